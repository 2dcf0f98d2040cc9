"""Discovery of a target: its extensions, model roles and deployed models."""
