"""Each datatype as binary data: read from requests, written to answers, and equal to its JSON form."""

ORDER = ("half_floats", "native_sizes", "empty_and_large", "booleans", "strings", "two_forms", "drawn_tensors")
