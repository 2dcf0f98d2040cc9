"""Each datatype as binary data: read from requests, written to answers, and equal to its JSON form."""

ORDER = ("half_floats", "native_sizes", "strings", "two_forms")
