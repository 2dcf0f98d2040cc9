"""Model roles: what a target has to serve, what its models compute, and the values that are sent to them."""
