"""A walk: thousands of exchanges that cross the axes of the ledger with each other, each judged by what the role computes.

axes            what can be said of an exchange, as data; which values never meet
covering        few steps in which every two values of any two axes meet
tensors         the values of a step                requests     what it asks for, and in which form
json_writing    how its JSON is spelled              ways         its content coding, framing and version of HTTP
company         what comes before it, and beside it  sending      a step against the target
expected        what is expected of the answer       shrinking    the plainest sequence that still goes wrong
blame           the requirement that this breaks     exchanges    the checks
"""
