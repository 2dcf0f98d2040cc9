"""What a fleet cannot begin with."""

from __future__ import annotations

from conformance.spec.user_error import UserError

USAGE = 4  # the exit status of a usage error, as pytest has it: 2 means interrupted


class FleetError(UserError):
    """The fleet file, an option or the folder cannot be used; the line names file, target and member."""

    status = USAGE
