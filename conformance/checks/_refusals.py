"""Requests that a server has to refuse, as data: the areas judge that it does, `errors` judges how."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from conformance.check import Row
from conformance.roles import Model
from conformance.wire.request import Message


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request with one fault.

    Attributes:
        fault: names the fault, in words joined by hyphens; the row's id.
        requirement: the ledger id under which it has to be refused.
        role: of the model that it goes to.
        message: makes it.
    """

    fault: str
    requirement: str
    role: str
    message: Callable[[Model], Message]

    def row(self) -> Row:
        """Return the row of a check that sends it."""
        return Row(self.fault, (self.message,), role=self.role, answers=(self.requirement,))


def refusal_rows(refusals: Iterable[Refusal]) -> list[Row]:
    """Return a row for each."""
    return [refusal.row() for refusal in refusals]
