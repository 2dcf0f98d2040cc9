"""Names of models that lead out of the models, or are no text."""

from __future__ import annotations

from conformance.checks.robustness.octets import plain
from conformance.checks.robustness.withstanding import ENDED, withstanding
from conformance.expect.unmet import Unmet
from conformance.roles.model import Model
from conformance.terms.check import Row, check, rows
from conformance.terms.text import safe
from conformance.transport.hostile_sending import Octets
from conformance.transport.target import Target

UP = 8  # folders
FILE = "etc/passwd"


@check("robustness.odd-name-leads-nowhere", answers="ROBUST-PATH", role="identity_int32", infers=False)
@rows(
    Row("folders-upwards", ("../" * UP + FILE,)),
    Row("folders-upwards-escaped", ("..%2F" * UP + FILE.replace("/", "%2F"),)),
    Row("dots-escaped", ("%2e%2e/" * UP + FILE,)),
    Row("escaped-twice", ("%252e%252e%252f" * UP + FILE,)),
    Row("backslashes", ("..%5C" * UP + FILE,)),
    Row("whole-path", ("%2F" + FILE.replace("/", "%2F"),)),
    Row("nul-behind-the-name", ("{model}%00.txt",)),
    Row("nul-alone", ("%00",)),
    Row("no-utf-8", ("%FF%FE%ED%A0%80",)),
    Row("half-an-escape", ("%",)),
    Row("no-escape", ("%zz",)),
    Row("4000-letters", ("x" * 4000,)),
)
def odd_name_leads_nowhere(target: Target, model: Model, name: str) -> None:
    """A name of a model that leads out of the models, or is no text, is refused, or the connection is closed."""
    message = plain(model)
    own, path = model.path.encode(), f"/v2/models/{name.format(model=model.name)}"
    octets = target.octets_of(message).replace(own, path.encode(), 1)
    with withstanding(target, model):
        reply = target.send_octets(message, Octets(octets, f"to {path[:80]}"))[0]
        if not (reply.has_failed(*ENDED) or (reply.status or 0) >= 300):  # a redirect is not followed
            raise Unmet("a refusal, or the end of the connection", safe(reply.outcome()), reply)
