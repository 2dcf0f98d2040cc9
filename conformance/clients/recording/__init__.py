"""The recording peer: a proxy that forwards bytes unchanged in both directions and records them."""
