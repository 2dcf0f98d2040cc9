"""Every datatype as binary data: in requests, in answers, and compared with JSON."""

ORDER = ("half_floats", "native_sizes", "strings", "two_forms", "generated")
