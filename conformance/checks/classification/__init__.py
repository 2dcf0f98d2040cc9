"""Classification: an output as its highest elements, each a text `value:index[:label]`."""

ORDER = ("forms", "limits", "misplaced_parameters", "texts", "counts", "shapes", "ranking", "same_as_http")
