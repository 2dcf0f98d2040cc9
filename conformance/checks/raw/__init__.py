"""Raw binary requests: the inference header is 0 and the body is the data of the model's one input."""

ORDER = ("bodies", "content_types", "eligible_models", "strings", "answers", "refusals", "empty_bodies")
