"""A finished run: results, verdict, and what a user sees of them."""
