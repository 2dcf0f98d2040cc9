"""Everything that touches a target: settings, connections, what it offers, and the record of each exchange."""
