"""The properties, a module for each kind of reader."""
