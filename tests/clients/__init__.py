"""What proves the judge of clients: an honest client, what makes it wrong, and what makes it different and right."""
