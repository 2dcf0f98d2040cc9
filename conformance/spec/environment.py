"""An environment variable that one program of the suite sets for another."""

from __future__ import annotations

from typing import Final

# Set for a command whose clients are watched: the addresses in its environment are meant for them. Without this mark, a
# pytest run inside the command would take them for a server to judge, if the suite is installed.
WATCHED_VARIABLE: Final = "OIP_WATCHED"
