"""Every datatype as binary data: in requests, in answers, and compared with its JSON form."""

ORDER = ("half_floats", "native_sizes", "strings", "two_forms", "generated")
