"""`binary_data_size`: correct sizes in requests and answers, and the treatment of wrong sizes."""

ORDER = ("declared_sizes", "wrong_sizes")
