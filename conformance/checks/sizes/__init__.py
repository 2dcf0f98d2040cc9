"""`binary_data_size`: correct sizes in requests and answers, and requests with wrong sizes."""

ORDER = ("declared_sizes", "wrong_sizes")
