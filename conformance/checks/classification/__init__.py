"""Classification: an output as its highest elements, each a text `value:index[:label]`."""

ORDER = ("forms", "limits", "texts", "counts", "shapes", "ranking")
