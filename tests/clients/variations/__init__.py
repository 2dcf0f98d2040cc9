"""Clients that are different and right, a module for each subject. The suite may accuse none of anything."""
