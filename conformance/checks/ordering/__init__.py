"""The order of binary data: that of the JSON before it, whatever the model declares."""

ORDER = ("request_order", "answer_order")
