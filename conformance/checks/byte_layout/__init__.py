"""The layout of binary data: little-endian, row-major, without gaps, directly after the JSON, and opaque."""

ORDER = ("order", "packing", "misframed_strings")
