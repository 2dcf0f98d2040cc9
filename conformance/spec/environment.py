"""The environment variable by which `client watch` tells a pytest run that the run is inside the watched command."""

from __future__ import annotations

from typing import Final

# Set for a command whose clients are watched: the addresses in its environment are meant for these clients. Without
# this variable, a pytest run inside the command would judge the server at these addresses, if the suite is installed.
WATCHED_VARIABLE: Final = "OIP_WATCHED"
