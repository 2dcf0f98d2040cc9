"""What can be expected of a client: of what it sends, of what it gives its caller, and of what it refuses to give."""
