"""The rules for what clients send: one request at a time, whoever received it."""
