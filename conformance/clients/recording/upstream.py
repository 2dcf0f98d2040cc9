"""The server behind a recording peer: where it is, and how a connection to it is made."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from conformance.transport.settings import Settings

PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server.

    Attributes:
        path: in front of `/v2`, which a client has to be told, too: nothing is put into its requests.
        tls: the context for TLS, or None.
        url: how messages call it.
    """

    host: str
    port: int
    path: str = ""
    tls: ssl.SSLContext | None = None
    url: str = ""


def read_http_upstream(settings: Settings) -> Upstream:
    """Return where a server listens for HTTP.

    Raises:
        SettingsError: its certificates cannot be read.
    """
    parts = urlsplit(settings.url)
    tls = settings.ssl_context() if parts.scheme == "https" else None
    return Upstream(parts.hostname or "", parts.port or PORTS[parts.scheme], parts.path, tls, settings.url)


def read_grpc_upstream(settings: Settings) -> Upstream:
    """Return where a server listens for gRPC.

    Raises:
        SettingsError: it has no such address, or its certificates cannot be read.
    """
    address = settings.grpc_address
    tls = None
    if address.tls:
        tls = ssl.create_default_context(cafile=settings.ca_file)
        if settings.insecure:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        tls.set_alpn_protocols(["h2"])
    return Upstream(address.host, address.port, tls=tls, url=address.url)
