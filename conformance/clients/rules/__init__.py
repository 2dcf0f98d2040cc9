"""The rules for requests of clients, applied to each request separately, whether watched or scripted."""
