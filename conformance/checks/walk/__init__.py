"""The walk: checks that send sequences of requests in which every pair of properties of a request occurs.

An axis is one property of an exchange; a step is one exchange with a value for each axis. The first value of an axis is
neutral: a plain step has only neutral values, except for its role and the forms of its tensors. The expected answer is
computed from the role, which is a model that the suite knows.

Start here: `exchanges` has the checks and what differs between HTTP and gRPC, and `walking` sends the steps and shrinks
failures.

- `axes`, `axes_over_grpc`: the axes and their values, and which values exclude each other
- `drawn_steps`: steps drawn by Hypothesis; `support.covering` builds the covering arrays
- `tensors`, `requests`, `json_writing`: the tensors of a step, its request, and the spelling of its JSON
- `encoding`, `concurrent_requests`: how the bytes of a step are sent, and its earlier and concurrent requests
- `sending`, `calls`: send a step over HTTP and over gRPC; `expected`: expectations on the answer
- `attribution`, `attribution_over_grpc`: the requirement that a failing sequence breaks, after
  `support.step_shrinking` has shrunk the sequence
"""
