"""`binary_data_size`: the bytes that it counts in requests and in answers, and what becomes of wrong ones."""

ORDER = ("request_sizes", "answer_sizes", "wrong_sizes", "overflowing_shapes")
