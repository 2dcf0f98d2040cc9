"""Classification: an output is returned as its highest elements, each a string `value:index[:label]`."""

ORDER = ("forms", "limits", "texts", "counts", "shapes", "ranking")
