"""A variable of the environment that one program of the suite sets for another."""

from __future__ import annotations

from typing import Final

# Set for a command whose clients are watched: the addresses in its environment are for them. Without it a pytest among
# its programs, in whose environment the suite happens to be installed, would take them for a server to judge.
WATCHED_VARIABLE: Final = "OIP_WATCHED"
