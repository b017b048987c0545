"""gRPC reflection, by which tools such as grpcurl learn what this server can be asked, in both of its versions.

The messages of v1 are those of v1alpha under another name, byte for byte, and grpcio brings v1alpha alone. So one
servicer answers both, and v1 is described by what describes v1alpha.
"""

from collections.abc import Iterable
from typing import Final

from google.protobuf import descriptor_pb2, descriptor_pool
from grpc_reflection.v1alpha import reflection, reflection_pb2

V1: Final = "grpc.reflection.v1.ServerReflection"
V1ALPHA: Final = reflection.SERVICE_NAME


def describer(names: Iterable[str]) -> reflection.ReflectionServicer:
    """A servicer that describes the services with these names, and reflection in both versions."""
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(_described_as_v1().SerializeToString())
    asyncio_servicer = reflection.aio.ReflectionServicer  # type: ignore[attr-defined]  # grpc-stubs do not know it
    described: reflection.ReflectionServicer = asyncio_servicer((*names, V1, V1ALPHA), pool)
    return described


def _described_as_v1() -> descriptor_pb2.FileDescriptorProto:
    """The file of v1alpha with every name in it as v1 has it."""
    described = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(described)
    described.name = _of_v1(described.name)
    described.package = _of_v1(described.package)
    for message in described.message_type:
        for field in message.field:
            if field.type_name:
                field.type_name = _of_v1(field.type_name)
    for service in described.service:
        for method in service.method:
            method.input_type, method.output_type = _of_v1(method.input_type), _of_v1(method.output_type)
    return described


def _of_v1(name: str) -> str:
    return name.replace("v1alpha", "v1")
