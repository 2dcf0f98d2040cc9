"""`binary_data_size`: the bytes that it counts in requests and in answers, and what becomes of wrong ones."""

ORDER = ("declared_sizes", "wrong_sizes")
