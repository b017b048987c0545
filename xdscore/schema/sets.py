"""Sets of descriptors from outside: read with limits, put together with what is known, and tried out. Pure.

A set is a serialized `FileDescriptorSet` (`protoc --include_imports --descriptor_set_out`, `buf build`). Everything
that is wrong with it is said at once, and nothing of it is used unless all of it can be.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message

from xdscore.schema import shipped
from xdscore.schema.notices import notices_of
from xdscore.schema.pool import Schema, SchemaError, schema_of
from xdscore.schema.rules import violations_of
from xdscore.schema.sensitive import marked_shape
from xdscore.schema.shapes import SPECIAL
from xdscore.schema.types_registry import class_of
from xdscore.schema.union import union

# All of Envoy's API, with its comments, is a tenth of the bytes and a fifth of the others.
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_FILES: Final = 5_000
MAX_MESSAGES: Final = 20_000
MAX_NAME_CHARS: Final = 300
MAX_PROBLEMS: Final = 50
_ENVOY: Final = re.compile(r"envoy-\d{1,4}\.\d{1,4}(?:\.\d{1,4})?")
_FILE_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/-]*")


def read_set(data: bytes) -> list[FileDescriptorProto]:
    """The files of a serialized set, without their comments. Raises SchemaError with everything that is wrong with it
    by itself.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError([f"The set has {len(data):,} bytes; at most {MAX_BYTES:,} are taken."])
    try:
        files = list(FileDescriptorSet.FromString(data).file)
    except DecodeError:
        raise SchemaError(["This is no FileDescriptorSet, which protoc writes with --descriptor_set_out."]) from None
    problems = list(_unreadable(files)) or list(_wrong_with(files))
    if problems:
        raise SchemaError(_bounded(problems))
    for file in files:
        file.ClearField("source_code_info")
    return files


def packed(files: Iterable[FileDescriptorProto]) -> bytes:
    """The set of these files, serialized: equal files give equal bytes."""
    ordered = sorted(files, key=lambda each: each.name)
    return FileDescriptorSet(file=ordered).SerializeToString(deterministic=True)


def schema_with(sets: Sequence[tuple[str, Sequence[FileDescriptorProto]]]) -> Schema:
    """The schema of what Parley brings along and these sets, by name. Raises SchemaError with all that keeps them from
    being one schema.

    A set named after an Envoy (`envoy-1.38.3`) says what that version knows: of what it writes in another way than the
    newer one does, the newer way counts. Any other set must fit as it is.
    """
    problems: list[str] = []
    files = {file.name: file for file in shipped.standard()}
    for name, more in sets:
        files, left_out = union(files.values(), [more])
        if not _ENVOY.fullmatch(name):
            problems += left_out
    if problems:
        raise SchemaError(_bounded(problems))
    return schema_of(files.values())


def tried(made: Schema, before: Schema) -> Schema:
    """The schema `made`, once everything that is asked of a message was asked of each that `before` has not. Raises
    SchemaError for those whose annotations cannot be obeyed, such as a rule with a bad expression.
    """
    problems = []
    for name, message in made.messages.items():
        known = before.messages.get(name)
        if known is None or len(known.fields) != len(message.fields):
            try:
                _ask(message)
            except Exception as error:  # noqa: BLE001  whatever annotations from outside make of our code, it is said here
                problems.append(f"{name}: its annotations cannot be obeyed ({type(error).__name__}).")
    if problems:
        raise SchemaError(_bounded(problems))
    return made


def _ask(message: Descriptor) -> None:
    marked_shape(message)
    empty = class_of(message)()
    list(notices_of(empty, ()))
    if message.full_name not in SPECIAL:
        list(violations_of(empty))


def _unreadable(files: Sequence[FileDescriptorProto]) -> Iterable[str]:
    """Descriptors are proto2, whose texts may be any bytes; protobuf hands those out as bytes."""
    for number, file in enumerate(files, 1):
        if not _is_text(file):
            yield f"File {number} of the set holds a name that is no text."


def _is_text(message: Message) -> bool:
    for field, value in message.ListFields():
        for each in value if field.is_repeated else (value,):
            if field.message_type is not None:
                if not _is_text(each):
                    return False
            elif field.type == FieldDescriptor.TYPE_STRING and not isinstance(each, str):
                return False
    return True


def _wrong_with(files: Sequence[FileDescriptorProto]) -> Iterable[str]:
    if not files:
        yield "The set is empty."
    if len(files) > MAX_FILES:
        yield f"The set has {len(files):,} files; at most {MAX_FILES:,} are taken."
    messages = sum(_messages_in(file.message_type) for file in files)
    if messages > MAX_MESSAGES:
        yield f"The set has {messages:,} messages; at most {MAX_MESSAGES:,} are taken."
    seen: set[str] = set()
    for file in files:
        if len(file.name) > MAX_NAME_CHARS or not _FILE_NAME.fullmatch(file.name) or ".." in file.name:
            yield f"{file.name[:MAX_NAME_CHARS]!r} is no name of a file."
        elif file.name in seen:
            yield f"{file.name} is in the set twice."
        seen.add(file.name)


def _messages_in(messages: Iterable[DescriptorProto]) -> int:
    pending, count = list(messages), 0
    while pending:
        count += 1
        pending.extend(pending.pop().nested_type)
    return count


def _bounded(problems: Sequence[str]) -> list[str]:
    more = len(problems) - MAX_PROBLEMS
    return [*problems[:MAX_PROBLEMS], *([f"And {more:,} more."] if more > 0 else [])]
