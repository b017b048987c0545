"""Sets from outside: what is taken beside what is known, and everything that is wrong with one, at once."""

import random

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet
from udpa.annotations import sensitive_pb2
from validate import validate_pb2

from tests.unit.schema.test_pool import file
from xdscore.schema import shipped
from xdscore.schema.pool import SchemaError
from xdscore.schema.sets import MAX_BYTES, packed, read_set, schema_with, tried
from xdscore.schema.types_registry import schema

F = FieldDescriptorProto
CLUSTER_FILE = "envoy/config/cluster/v3/cluster.proto"


def of_the_api(name: str = CLUSTER_FILE) -> FileDescriptorProto:
    (found,) = [each for each in shipped.standard() if each.name == name]
    copy = FileDescriptorProto()
    copy.CopyFrom(found)
    return copy


def refused(*files: FileDescriptorProto, name: str = "own") -> str:
    with pytest.raises(SchemaError) as failure:
        tried(schema_with([(name, read_set(packed(files)))]), schema())
    return "\n".join(failure.value.problems)


def test_set__of_an_own_extension__is_known_beside_everything_else() -> None:
    made = schema_with([("own", [file("acme/filter.proto", CLUSTER_FILE, message="Filter", text=1)])])

    assert "acme.Filter" in made.messages
    assert made.messages.keys() > schema().messages.keys()
    assert "acme.Filter" not in schema().messages


def test_set__with_a_field_more_in_a_known_message__adds_it_and_takes_nothing_away() -> None:
    newer = of_the_api()
    cluster = next(each for each in newer.message_type if each.name == "Cluster")
    del cluster.field[3:]
    cluster.field.add(name="of_tomorrow", number=9_999, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)

    made = schema_with([("own", [newer])]).messages["envoy.config.cluster.v3.Cluster"]

    before = schema().messages["envoy.config.cluster.v3.Cluster"]
    assert {each.name for each in made.fields} == {each.name for each in before.fields} | {"of_tomorrow"}
    assert [each.name for each in made.oneofs] == [each.name for each in before.oneofs]
    assert {each.name: each.number for each in before.fields}.items() <= {
        each.name: each.number for each in made.fields
    }.items()


def test_set__that_says_of_a_secret_that_it_is_none__changes_nothing() -> None:
    secret = of_the_api("envoy/extensions/transport_sockets/tls/v3/common.proto")
    for message in secret.message_type:
        for field in message.field:
            field.ClearField("options")

    made = schema_with([("envoy-9.9.9", [secret])])

    key = made.messages["envoy.extensions.transport_sockets.tls.v3.TlsCertificate"].fields_by_name["private_key"]
    assert key.GetOptions().Extensions[sensitive_pb2.sensitive]


def test_set__with_other_numbers_and_types__is_refused_with_each_of_them() -> None:
    other = of_the_api()
    cluster = next(each for each in other.message_type if each.name == "Cluster")
    by_name = {each.name: each for each in cluster.field}
    by_name["name"].number = 9_998
    by_name["alt_stat_name"].type = F.TYPE_BYTES
    cluster.field.add(name="taken", number=4, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)

    said = refused(other)

    assert "envoy.config.cluster.v3.Cluster.name: its number is 9998, and 1 is known." in said
    assert "envoy.config.cluster.v3.Cluster.alt_stat_name: it is bytes, and string is known." in said
    assert "envoy.config.cluster.v3.Cluster.taken: its number 4 is that of connect_timeout." in said


def test_set__of_an_envoy__leaves_out_what_the_newer_one_writes_in_another_way() -> None:
    made = schema_with([("envoy-1.38.3", shipped.files_of("envoy-1.38.3"))])

    info = made.messages["envoy.extensions.filters.http.mcp_json_rest_bridge.v3.ServerInfo"]
    assert "supported_protocol_versions" not in info.fields_by_name
    assert "supported_protocol_versions" in refused(*shipped.files_of("envoy-1.38.3"))


def test_set__that_defines_a_known_message_in_another_file__is_refused() -> None:
    twin = FileDescriptorProto(name="twin.proto", package="envoy.config.cluster.v3", syntax="proto3")
    twin.message_type.add(name="Cluster")

    assert f"envoy.config.cluster.v3.Cluster is defined in {CLUSTER_FILE} already" in refused(twin)


def test_set__that_lacks_imports__is_refused_with_their_names() -> None:
    said = refused(file("a.proto", "b.proto"), file("c.proto", "d.proto"))

    assert "b.proto, which is not there" in said
    assert "d.proto, which is not there" in said


def test_set__with_a_rule_that_cannot_be_obeyed__is_refused() -> None:
    bad = file("bad.proto", "validate/validate.proto", message="Bad", text=1)
    rules = bad.message_type[0].field[0].options.Extensions[validate_pb2.rules]
    rules.string.pattern = "(unclosed"

    assert "acme.Bad: its annotations cannot be obeyed" in refused(bad)


def test_set__of_bytes_that_are_none__is_refused() -> None:
    chance = random.Random(31)  # noqa: S311  # variety that is the same in every run
    sound = packed([file("a.proto", message="A", text=1)])
    for data in (b"", b"\x00", chance.randbytes(4_000), sound[:-3], b"x" * (MAX_BYTES + 1)):
        with pytest.raises(SchemaError):
            read_set(data)


def test_set__of_anything_that_was_spoiled__is_refused_or_sound_but_never_breaks() -> None:
    chance = random.Random(32)  # noqa: S311  # variety that is the same in every run
    sound = packed([of_the_api(), file("acme/a.proto", CLUSTER_FILE, message="A", text=1)])
    for _ in range(60):
        data = bytearray(sound)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            tried(schema_with([("own", read_set(bytes(data)))]), schema())
        except SchemaError as error:
            assert all(error.problems)  # noqa: PT017  both ends are right


def test_set__with_names_that_lead_elsewhere_or_stand_twice__is_refused() -> None:
    doubled = FileDescriptorSet(file=[file("a.proto"), file("a.proto"), file("../b.proto"), file("/etc/x.proto")])

    with pytest.raises(SchemaError) as failure:
        read_set(doubled.SerializeToString())

    assert failure.value.problems == (
        "a.proto is in the set twice.",
        "'../b.proto' is no name of a file.",
        "'/etc/x.proto' is no name of a file.",
    )
