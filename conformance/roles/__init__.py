"""Model roles: the models that a target should serve for the checks, their computations, and their sample inputs.

A role is a signature and a computation, described in `roles.toml`. A model of the target fills a role.
"""
