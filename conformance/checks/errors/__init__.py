"""Refusals: an error status, an error object, and no effect on later requests."""

ORDER = ("impossible", "tolerated_inputs", "refusal_form", "afterwards")
