"""Why a target has nothing to judge: a kind and its details for programs, and a sentence for people.

The sentence says what to give so that there is something, in the names of whoever is told: options of a command, or
arguments of a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conformance.spec.extensions import PROTOCOL
from conformance.spec.text import escape_text

ALL_MODELS = "all"  # as the name of a model: every one that the target lists
MAX_SHOWN_NAMES, MAX_NAMES_LENGTH = 8, 400  # of models in a message; characters


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """How a user gives what the suite asks for; `{}` stands for the value.

    Attributes:
        model: the name of a model to judge.
        extension: one to judge, offered or not.
        header: one that is sent with every request.
    """

    model: str
    extension: str
    header: str


COMMAND_LINE_NAMES = ArgumentNames("--target-model {}", "--target-extension={}", "--target-header")
PYTHON_NAMES = ArgumentNames('models=["{}"]', 'extensions=["{}"]', "headers={...}")


class MissingKind(StrEnum):
    """What is not there; in brackets what the details are."""

    ANSWERS = "answers"  # nobody answers, or what is asked for is not there (why)
    METADATA = "metadata"  # nor any model (what came instead)
    LIST_OF_MODELS = "list_of_models"  # when all are to be judged
    ROLES = "roles"  # nor any model that is listed
    ROLES_OVER_GRPC = "roles_over_grpc"  # where there is no list of models
    ROLES_AMONG_MODELS = "roles_among_models"  # (the models that are listed)
    WORKING_MODELS = "working_models"  # (of each why it does not work)
    PLAIN_CONTENT = "plain_content"  # (the content coding of the answers)
    EXTENSIONS = "extensions"  # (of each why it is not judged)


_ROLES = "{url} serves none of the suite's model roles (`oip-conformance roles` prints them)"
_SENTENCES: Mapping[MissingKind, str] = {
    MissingKind.ANSWERS: "{details}",
    MissingKind.METADATA: (
        "{url} gives no server metadata ({details}): check the path of the URL, in front of /v2, and whether a gateway"
        " asks for a header ({header})"
    ),
    MissingKind.LIST_OF_MODELS: (
        "{url} lists no models, neither at GET /v2/models nor at POST /v2/repository/index: name the models to judge,"
        " {model}"
    ),
    MissingKind.ROLES: f"{_ROLES}, and lists no models: to judge one that it serves, name it, {{model}}",
    MissingKind.ROLES_OVER_GRPC: f"{_ROLES}: deploy some, `oip-conformance models export` writes them",
    MissingKind.ROLES_AMONG_MODELS: f"{_ROLES}; it serves {{listed}}: judge with {{models}}",
    MissingKind.WORKING_MODELS: "{details}",
    MissingKind.PLAIN_CONTENT: (
        "{url} answers in the content coding {details}, which nobody asked for (Accept-Encoding: identity): nothing of"
        " it can be judged; see whether a gateway compresses answers"
    ),
    MissingKind.EXTENSIONS: (
        "{url} offers none of the extensions ({details}): {protocol} judges the protocol beneath them, {extension} an"
        " extension all the same"
    ),
}


@dataclass(frozen=True, slots=True)
class NothingToJudge:
    """Why there is nothing to judge.

    Attributes:
        details: see `MissingKind`.
    """

    lack: MissingKind
    url: str
    details: tuple[str, ...] = ()

    def text(self, names: ArgumentNames = COMMAND_LINE_NAMES) -> str:
        """Return one line that says so, and what to do."""
        choices = (*(escape_text(name, 100) for name in self.details[:1]), *((ALL_MODELS,) if self.details[1:] else ()))
        return _SENTENCES[self.lack].format(
            url=self.url,
            details="; ".join(self.details),
            listed=escape_text(shorten_names(self.details), MAX_NAMES_LENGTH),
            model=names.model.format("NAME"),
            models=", or ".join(map(names.model.format, choices)),
            protocol=names.extension.format(PROTOCOL),
            extension=names.extension.format("NAME"),
            header=names.header,
        )


def shorten_names(names: Sequence[str]) -> str:
    """Return the first of these names, and how many more there are."""
    more = f" and {len(names) - MAX_SHOWN_NAMES} more" if len(names) > MAX_SHOWN_NAMES else ""
    return f"{', '.join(names[:MAX_SHOWN_NAMES])}{more}"
