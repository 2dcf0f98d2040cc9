"""Writes Triton's grpc_service.proto, as the wheel of tritonclient has it, in the form that protoc reads.

python targets/clients/go/stubs.py FILE
"""

import sys
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from tritonclient.grpc import model_config_pb2, service_pb2

found = FileDescriptorSet()
for module in (model_config_pb2, service_pb2):
    module.DESCRIPTOR.CopyToProto(found.file.add())
Path(sys.argv[1]).write_bytes(found.SerializeToString())
