"""A run that judges a client: an adapter tells the client what to send, and scripted peers answer its requests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from conformance.clients.adapter import AdapterError, AdapterProcess
from conformance.clients.inference import Introduction
from conformance.discovery.discovery_result import DiscoveryResult, Progress, ignore_progress
from conformance.judging.client_session import ClientSession, describe_client
from conformance.judging.conclusion import Conclusion, conclude_nothing_judged
from conformance.judging.run_options import ClientOptions, read_client_options
from conformance.judging.selection import CLIENTS, Subjects
from conformance.plugin.base_run import BaseRun, find_process_id
from conformance.report import client_terminal
from conformance.spec.ledger import Party
from conformance.spec.report import TargetDetails

MAX_SHOWN_ROWS = 3  # lines of standard error from an adapter that does not start


class ClientRun(BaseRun):
    """The state of one run that judges a client.

    `session`: the session of the client; None until the run has started, or if the adapter fails to introduce itself.
    """

    party: ClassVar[Party] = Party.CLIENT
    options: ClientOptions

    def __init__(self, config: pytest.Config, from_controller: Mapping[str, Any] | None = None) -> None:
        """Read the options.

        `from_controller`: the adapter's introduction from the controller, if this process is a worker.

        Raises UserError: an option cannot be used.
        """
        super().__init__(config)
        self.options = read_client_options(config.option, config.getini)
        self.session: ClientSession | None = None
        self._from_controller = from_controller

    @property
    def has_started(self) -> bool:
        """Whether the run has asked the adapter to introduce the client, or has found nothing to judge."""
        return self.session is not None or self.conclusion is not None

    @property
    def subjects(self) -> Subjects:
        """The subjects of the run: a client."""
        return CLIENTS

    @property
    def transports(self) -> Sequence[str]:
        """The judged transports of the client."""
        return self.session.transports if self.session else ()

    @property
    def url(self) -> str:
        """The URL to which the client sends requests."""
        return self.session.settings.url if self.session else ""

    @property
    def name(self) -> str:
        """The name of the client, with its version."""
        return " ".join(part for part in (self.client.name, self.client.version) if part)

    @property
    def grpc_url(self) -> str:
        """The gRPC address to which the client sends requests."""
        return self.session.settings.grpc.url if self.session and self.session.settings.grpc else ""

    @property
    def client(self) -> Introduction:
        """The introduction of the client by its adapter."""
        return self.session.client if self.session else Introduction("")

    @property
    def discovery_result(self) -> DiscoveryResult:
        """The name and version of the client, and the extensions that the client supports at least in part."""
        return describe_client(self.client, self.conclusion.results if self.conclusion else self.results)

    def start(self, progress: Progress = ignore_progress) -> None:
        """Start the adapter and request its introduction; a worker receives the introduction from its controller."""
        options = self.options
        adapter = AdapterProcess(options.arguments, introduction_timeout=options.timeout)
        known = Introduction.from_dict(self._from_controller["client"]) if self._from_controller else None
        progress("asking the adapter to introduce its client")
        try:
            self.session = ClientSession(
                adapter, known, strict=options.strict, evidence=options.evidence, process=find_process_id(self._config)
            )
        except AdapterError as error:
            self.conclusion = conclude_nothing_judged("; ".join([str(error), *error.stderr[-MAX_SHOWN_ROWS:]]))
            return
        if not self.transports:
            self.conclusion = conclude_nothing_judged(client_terminal.describe_transports(self.client, self.transports))
        self._store_selection(self.session.judge)

    def build_worker_input(self) -> dict[str, Any]:
        """Return the client's introduction for a worker."""
        return {"client": self.describe_client()}

    def describe_client(self) -> dict[str, Any]:
        """Return the introduction of the client."""
        return self.client.to_dict()

    # --- output ---

    def list_header_lines(self) -> list[str]:
        """Return the header lines of the run."""
        return client_terminal.format_header(self.client, self.options.command, self.transports, self.options.profile)

    def explain_unjudged(self, conclusion: Conclusion) -> Iterator[str]:
        """Yield lines with the reasons why rows were not judged, as the client states them."""
        return client_terminal.format_unjudged(conclusion.results)

    def build_rerun_command(self) -> str:
        """Return the command that runs the suite against this client, without options that select checks."""
        return shlex.join(["pytest", f"--client-adapter={self.options.command}"])

    def describe_target(self) -> TargetDetails:
        """Return the client's language, and the transports over which it was judged."""
        return {"language": self.client.language, "transports": list(self.transports)}

    # --- end ---

    def close(self) -> None:
        """Stop the adapter and the peer."""
        if self.session is not None:
            self.session.close()
            self.session = None
