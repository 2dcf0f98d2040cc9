"""What the server says about itself and its models."""
