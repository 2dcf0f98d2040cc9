"""What hostile peers do with one exchange: a module for each subject, a row for each misbehaviour.

One more takes a few lines in the module of its subject: a function under `comes_to`, or bytes that it `add_row`.
"""

from __future__ import annotations

from tests.hostile.misbehaviours import bodies, connections, heads
from tests.hostile.misbehaviours.rows import ROWS, Row

MODULES = (heads, bodies, connections)

__all__ = ["MODULES", "ROWS", "Row"]
