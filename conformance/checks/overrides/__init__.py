"""Which outputs come as binary data: `binary_data_output` on the request, `binary_data` on an output, and both."""

ORDER = ("forms", "parameters")
