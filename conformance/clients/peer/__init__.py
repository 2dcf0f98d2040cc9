"""Scripted peers: they answer a client's inferences with the bytes that a script says, and keep what they heard."""

from conformance.clients.peer.peer import Peer
from conformance.clients.peer.received_request import ReceivedRequest

__all__ = ["Peer", "ReceivedRequest"]
