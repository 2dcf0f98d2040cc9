"""The rules for requests of clients. Each rule judges a single request, without the intent of its caller."""
