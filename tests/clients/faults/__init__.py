"""Clients that are wrong, a module for each subject. The suite has to see each, and to name what it misses."""
