"""Model roles: the models that a target should serve, their computations, and sample inputs."""
