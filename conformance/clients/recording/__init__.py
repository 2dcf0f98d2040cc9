"""The recording proxy: forwards bytes between clients and a server unchanged, and records the requests and answers."""
