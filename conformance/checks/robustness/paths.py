"""Names of models that lead out of the models, or are no text."""

from __future__ import annotations

from conformance.checks.robustness.octets import make_plain_request
from conformance.checks.robustness.survival import CLOSED_KINDS, expect_still_serving
from conformance.expect.unmet import UnmetError
from conformance.roles.model import Model
from conformance.spec.check import Row, check, rows
from conformance.spec.text import escape_text
from conformance.transport.hostile_sending import Octets
from conformance.transport.target import Target

PARENT_FOLDERS = 8  # folders
TARGET_FILE = "etc/passwd"


@check("robustness.odd-name-leads-nowhere", answers="ROBUST-PATH", role="identity_int32", infers=False)
@rows(
    Row("folders-upwards", ("../" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("folders-upwards-escaped", ("..%2F" * PARENT_FOLDERS + TARGET_FILE.replace("/", "%2F"),)),
    Row("dots-escaped", ("%2e%2e/" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("escaped-twice", ("%252e%252e%252f" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("backslashes", ("..%5C" * PARENT_FOLDERS + TARGET_FILE,)),
    Row("whole-path", ("%2F" + TARGET_FILE.replace("/", "%2F"),)),
    Row("nul-behind-the-name", ("{model}%00.txt",)),
    Row("nul-alone", ("%00",)),
    Row("no-utf-8", ("%FF%FE%ED%A0%80",)),
    Row("half-an-escape", ("%",)),
    Row("no-escape", ("%zz",)),
    Row("4000-letters", ("x" * 4000,)),
)
def odd_name_leads_nowhere(target: Target, model: Model, name: str) -> None:
    """A name of a model that leads out of the models, or is no text, is refused, or the connection is closed."""
    message = make_plain_request(model)
    own, path = model.path.encode(), f"/v2/models/{name.format(model=model.name)}"
    octets = target.render_octets(message).replace(own, path.encode(), 1)
    with expect_still_serving(target, model):
        reply = target.send_octets(message, Octets(octets, f"to {path[:80]}"))[0]
        if not (reply.has_failed(*CLOSED_KINDS) or (reply.status or 0) >= 300):  # a redirect is not followed
            raise UnmetError("a refusal, or the end of the connection", escape_text(reply.outcome()), reply)
