"""How elements lie in the body: little-endian, row by row, without gaps, right after the JSON and left alone."""

ORDER = ("byte_order", "element_order", "packing", "opaque_bytes", "misframed_strings", "drawn_shapes")
