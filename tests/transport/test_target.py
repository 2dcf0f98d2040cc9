"""How long a target that cannot be reached is waited for."""

from __future__ import annotations

import pytest

from conformance.transport.exchange import Exchange
from conformance.transport.settings import Settings
from conformance.transport.target import Target
from conformance.transport.unreachable import TargetLostError, UnreachableError
from conformance.wire.request import Message

LIVE = Message("/v2/health/live", method="GET")


class FailingTarget(Target):
    """A target that cannot be reached for this reason until it is back."""

    def __init__(self, reason: str, back_after: int, *, is_untrusted: bool = False) -> None:
        super().__init__(Settings("https://h", timeout=60))
        self.reason, self.back_after, self.tries, self.is_untrusted = reason, back_after, 0, is_untrusted

    def _send(self, message: Message, *, fresh: bool = False) -> Exchange:
        del fresh
        self.tries += 1
        if self.tries > self.back_after:
            return Exchange(0, message, "https://h", status=200)
        raise UnreachableError(f"cannot connect to https://h: {self.reason}", is_untrusted=self.is_untrusted)


def test_a_server_that_starts_anew_is_waited_for() -> None:
    target = FailingTarget("Connection refused", back_after=2)
    assert target.send(LIVE).status == 200
    assert (target.tries, target.lost) == (3, None)


def test_a_certificate_that_is_not_trusted_is_not_waited_for() -> None:
    target = FailingTarget("whatever it says", back_after=2, is_untrusted=True)
    with pytest.raises(TargetLostError, match="; --target-ca FILE names the certificates to trust"):
        target.send(LIVE)
    with pytest.raises(TargetLostError):
        target.send(LIVE)
    assert target.tries == 1
