"""The core concepts of all other packages: requirements, checks, outcomes, results, verdict."""
