"""Classification: a server returns the highest elements of an output, each as a string `value:index[:label]`."""

ORDER = ("forms", "limits", "texts", "counts", "shapes", "ranking")
