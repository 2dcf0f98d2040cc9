"""Raw binary requests: the inference header is 0 and the body is the data of the model's only input."""

ORDER = ("requests", "generated", "refusals")
