"""What a target offers: extensions, model roles, deployed models."""
