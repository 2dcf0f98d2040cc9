"""`binary_data_size`: correct sizes in requests and answers, and requests with wrong sizes. Bodies of megabytes."""

ORDER = ("declared_sizes", "wrong_sizes", "large_bodies")
