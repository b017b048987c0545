"""Pools of our own: what cannot be one says all that is wrong, and the default pool stays as it is."""

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

from xdscore.schema.pool import SchemaError, schema_of

F = FieldDescriptorProto


def file(name: str, *imports: str, message: str = "", **fields: int) -> FileDescriptorProto:
    made = FileDescriptorProto(name=name, package="acme", syntax="proto3", dependency=imports)
    if message:
        made.message_type.add(name=message).field.extend(
            F(name=field, number=number, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL) for field, number in fields.items()
        )
    return made


def test_schema__files_in_any_order__are_put_in_that_of_their_imports() -> None:
    made = schema_of([file("a.proto", "b.proto", message="A"), file("b.proto", message="B", text=1)])

    assert list(made.messages) == ["acme.A", "acme.B"]
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("acme.A")


def test_schema__a_long_chain_of_imports__is_no_trouble() -> None:
    chain = [file(f"{number}.proto", f"{number + 1}.proto") for number in range(3_000)]

    assert schema_of([*chain, file("3000.proto", message="Last")]).messages.keys() == {"acme.Last"}


def test_schema__everything_that_is_wrong__is_said_at_once() -> None:
    broken = file("broken.proto", message="Broken", one=1)
    broken.message_type[0].field.add(name="two", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)

    with pytest.raises(SchemaError) as failure:
        schema_of(
            [
                file("alone.proto", "missing.proto"),
                file("round.proto", "about.proto"),
                file("about.proto", "round.proto"),
                broken,
            ]
        )

    said = "\n".join(failure.value.problems)
    assert "alone.proto: it imports missing.proto, which is not there." in said
    assert "which needs about.proto itself" in said or "which needs round.proto itself" in said
    assert "broken.proto: " in said
    assert len(failure.value.problems) == 3
