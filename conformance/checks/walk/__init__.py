"""A walk: exchanges that cross the axes of the ledger with each other, each judged by what the role computes.

Where to begin: `exchanges` has the checks over HTTP and `calls` those over gRPC, `walking` takes the steps.

- `axes`, `axes_over_grpc`: what can be said of an exchange, as data, and which values never meet
- `covering`: few steps in which every two values of any two axes meet; `draw_steps`: those that Hypothesis draws
- `tensors`, `requests`, `json_writing`: the values of a step, what it asks for, and how its JSON is spelled
- `ways`, `company`: how its bytes travel, and what comes before it and beside it
- `sending`: a step against the target; `expected`: what is expected of the answer
- `shrinking`: the plainest sequence that still goes wrong; `blame`, `blame_over_grpc`: the requirement that it breaks
"""
