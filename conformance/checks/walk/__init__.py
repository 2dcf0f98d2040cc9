"""The checks that walk: they send sequences of requests that combine the properties of a request pairwise.

An axis is one property of an exchange; a step is one exchange with a value for each axis. The role, which is a model
that the suite knows, computes the expected answer. Start here: `exchanges` has the checks over HTTP, `calls` the checks
over gRPC, and `walking` sends the steps and shrinks failures.

- `axes`, `axes_over_grpc`: the axes and their values, and which values exclude each other
- `drawn_steps`: steps drawn by Hypothesis; `support.covering` builds the covering arrays
- `tensors`, `requests`, `json_writing`: the tensors of a step, its request, and the spelling of its JSON
- `encoding`, `concurrent_requests`: how its bytes are sent, and earlier or concurrent requests
- `sending`: sends a step to the target; `expected`: expectations on the answer
- `attribution`, `attribution_over_grpc`: the requirement that a sequence breaks, once `support.step_shrinking` has
  minimized it
"""
