"""How elements lie in the body: little-endian, row by row, without gaps, right after the JSON and left alone."""

ORDER = ("order", "packing", "misframed_strings")
