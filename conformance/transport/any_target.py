"""A target over HTTP or gRPC, for checks that run over both: they use what `Target` and `GrpcTarget` have in common."""

from conformance.transport.grpc_target import GrpcTarget
from conformance.transport.target import Target

# `outlives_errors`: whether checks send the next request on the same connection after a refusal. True over gRPC. False
# over HTTP, where some servers close the connection without notice; a separate check judges these servers.
# `through_json`: whether received values are approximate, because they were decimal numbers in JSON. False over gRPC,
# where all values are exact. None over HTTP, where only the values of JSON outputs are approximate.
AnyTarget = Target | GrpcTarget
