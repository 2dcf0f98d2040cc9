"""Tests of clients: the client under test, its tasks, the requests that it sends, and the peers that answer them."""
