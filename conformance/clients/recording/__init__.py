"""A recording peer: a proxy that changes no byte in either direction, and what it writes down beside that."""
