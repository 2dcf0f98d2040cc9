"""Scripted peers: they answer a client's inferences with the bytes that a script says, and keep what they heard."""

from conformance.clients.peer.heard import Heard
from conformance.clients.peer.peer import Peer

__all__ = ["Heard", "Peer"]
