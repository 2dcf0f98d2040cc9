"""gRPC: the methods of the service, tensors in both forms, refusals, and agreement with HTTP."""

ORDER = ("methods", "answers", "tensors", "generated", "order", "golden_calls", "wrong_contents", "isolation")
