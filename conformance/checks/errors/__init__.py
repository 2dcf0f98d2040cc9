"""How a server refuses: with an error status, with an error object, and without harm to what comes next."""

ORDER = ("impossible", "tolerated_inputs", "refusal_form", "afterwards")
