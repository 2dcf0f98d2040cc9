"""Outputs as binary data or JSON: `binary_data_output` of the request, `binary_data` of an output, and both."""

ORDER = ("forms", "parameters")
