"""An environment variable that one program of the suite sets for another."""

from __future__ import annotations

from typing import Final

# Set for a command whose clients are watched: the addresses in its environment are meant for these clients. Without
# this variable, a pytest run inside the command would judge the server at these addresses, if the suite is installed.
WATCHED_VARIABLE: Final = "OIP_WATCHED"
