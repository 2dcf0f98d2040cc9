"""Everything that touches a peer: settings, HTTP, raw sockets, gRPC, and the record of each exchange."""
