"""The layout of binary data: little-endian, row-major, without gaps, directly after the JSON, with any byte values."""

ORDER = ("order", "packing", "misframed_strings")
