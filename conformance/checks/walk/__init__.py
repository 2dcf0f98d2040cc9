"""A walk: a sequence of exchanges that combine the properties of a request pairwise.

An axis is one property of an exchange; a step is one exchange with a value for each axis. The role computes the right
answer. Where to begin: `exchanges` has the checks over HTTP, `calls` those over gRPC; `walking` takes the steps.

- `axes`, `axes_over_grpc`: the axes and their values, and which values exclude each other
- `covering`: covering arrays of steps; `drawn_steps`: steps drawn by Hypothesis
- `tensors`, `requests`, `json_writing`: the tensors of a step, its request, and the spelling of its JSON
- `encoding`, `concurrent_requests`: how its bytes are sent, and earlier or concurrent requests
- `sending`: sends a step to the target; `expected`: expectations on the answer
- `shrinking`: minimizes a failing sequence; `attribution`, `attribution_over_grpc`: the requirement that it breaks
"""
