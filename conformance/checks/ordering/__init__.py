"""The order of binary data follows the JSON of the message, not the declaration of the model."""

ORDER = ("request_order", "answer_order")
