"""One schema of several sets of descriptors: what any of them knows is known.

The first set says how something that several know is written; the others only add: files, messages, fields, enum
values. So an older Envoy's set takes nothing away, and no set can take the mark of a secret from a field.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from google.protobuf.message import Message

_Named = DescriptorProto | EnumDescriptorProto | ServiceDescriptorProto | FieldDescriptorProto
Files = dict[str, FileDescriptorProto]
M = TypeVar("M", bound=Message)


def union(
    first: Iterable[FileDescriptorProto], more: Iterable[Iterable[FileDescriptorProto]]
) -> tuple[Files, tuple[str, ...]]:
    """The files of all these sets, by name, and a sentence about each thing that was left out because it cannot be true
    beside what was there before.
    """
    joined = _Union({file.name: file for file in first})
    for files in more:
        for file in files:
            joined.add(file)
    return joined.files, tuple(dict.fromkeys(joined.problems))


@dataclass(slots=True)
class _Union:
    """Sets of descriptors while they are put together. `homes`: the file in which a top-level name is defined."""

    files: Files
    problems: list[str] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file in self.files.values():
            self.homes |= dict.fromkeys(_names_in(file), file.name)

    def add(self, file: FileDescriptorProto) -> None:
        """Add what is new of a file."""
        for name in _names_in(file):
            home = self.homes.setdefault(name, file.name)
            if home != file.name:
                self.problems.append(f"{file.name}: {name} is defined in {home} already.")
        known = self.files.get(file.name)
        if known is None:
            self.files[file.name] = file
        elif known.package != file.package:
            self.problems.append(f"{file.name}: its package is {file.package!r}, and {known.package!r} is known.")
        elif known.SerializeToString(deterministic=True) != file.SerializeToString(deterministic=True):
            joined = _copy(known)
            joined.dependency.extend(each for each in file.dependency if each not in known.dependency)
            prefix = f"{file.package}." if file.package else ""
            self._messages(joined.message_type, file.message_type, prefix)
            self._enums(joined.enum_type, file.enum_type, prefix)
            own = {each.name for each in joined.extension} | {each.name for each in joined.service}
            joined.extension.extend(each for each in file.extension if each.name not in own)
            joined.service.extend(each for each in file.service if each.name not in own)
            self.files[file.name] = joined

    def _messages(
        self, ours: RepeatedCompositeFieldContainer[DescriptorProto], theirs: Iterable[DescriptorProto], prefix: str
    ) -> None:
        known = {each.name: each for each in ours}
        for message in theirs:
            if message.name in known:
                self._message(known[message.name], message, prefix + message.name)
            else:
                ours.append(message)

    def _message(self, ours: DescriptorProto, theirs: DescriptorProto, name: str) -> None:
        self._messages(ours.nested_type, theirs.nested_type, f"{name}.")
        self._enums(ours.enum_type, theirs.enum_type, f"{name}.")
        by_name = {each.name: each for each in ours.field}
        by_number = {each.number: each for each in ours.field}
        added = []
        for other in theirs.field:
            known, holder = by_name.get(other.name), by_number.get(other.number)
            if known is not None:
                self._compare(known, other, f"{name}.{other.name}")
            elif holder is not None:
                self.problems.append(f"{name}.{other.name}: its number {other.number} is that of {holder.name}.")
            else:
                added.append(other)
        if added:
            _append(ours, theirs, added)

    def _compare(self, known: FieldDescriptorProto, other: FieldDescriptorProto, name: str) -> None:
        if known.number != other.number:
            self.problems.append(f"{name}: its number is {other.number}, and {known.number} is known.")
        elif (known.type, known.type_name) != (other.type, other.type_name):
            self.problems.append(f"{name}: it is {_type(other)}, and {_type(known)} is known.")

    def _enums(
        self,
        ours: RepeatedCompositeFieldContainer[EnumDescriptorProto],
        theirs: Iterable[EnumDescriptorProto],
        prefix: str,
    ) -> None:
        known = {each.name: each for each in ours}
        for enum in theirs:
            if enum.name not in known:
                ours.append(enum)
                continue
            present = known[enum.name].value
            numbers = {each.name: each.number for each in present}
            taken = set(numbers.values())
            for value in enum.value:
                if numbers.get(value.name, value.number) != value.number:
                    self.problems.append(
                        f"{prefix}{enum.name}.{value.name}: its number is {value.number}, and {numbers[value.name]} "
                        "is known."
                    )
                elif value.number not in taken:
                    present.append(value)


def _append(ours: DescriptorProto, theirs: DescriptorProto, added: Iterable[FieldDescriptorProto]) -> None:
    """Add fields to a message, each in the oneof of its name. Those of `optional` fields come last, as protobuf
    asks.
    """
    del ours.reserved_range[:], ours.reserved_name[:]  # what an older set still has is reserved in a newer one
    oneofs: dict[str, tuple[bool, OneofDescriptorProto]] = {}
    fields: list[tuple[FieldDescriptorProto, str]] = []
    for each, of in [*((each, ours) for each in ours.field), *((each, theirs) for each in added)]:
        name = ""
        if each.HasField("oneof_index"):
            oneof = of.oneof_decl[each.oneof_index]
            name = oneof.name
            oneofs.setdefault(name, (each.proto3_optional, _copy(oneof)))
        fields.append((_copy(each), name))
    ordered = sorted(oneofs, key=lambda name: oneofs[name][0])
    del ours.field[:], ours.oneof_decl[:]
    ours.oneof_decl.extend(oneofs[name][1] for name in ordered)
    for each, name in fields:
        if name:
            each.oneof_index = ordered.index(name)
        ours.field.append(each)


def _copy(message: M) -> M:
    made = type(message)()
    made.CopyFrom(message)
    return made


def _names_in(file: FileDescriptorProto) -> list[str]:
    prefix = f"{file.package}." if file.package else ""
    kinds: tuple[Iterable[_Named], ...] = (file.message_type, file.enum_type, file.service, file.extension)
    return [prefix + each.name for kind in kinds for each in kind]


def _type(one: FieldDescriptorProto) -> str:
    """The type of a field in words."""
    if one.type_name:
        return one.type_name.lstrip(".")
    return str(FieldDescriptorProto.Type.Name(one.type)).removeprefix("TYPE_").lower()
