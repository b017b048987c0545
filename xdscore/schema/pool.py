"""The one place that makes a pool of descriptors: from files, in the order in which they need each other.

Never protobuf's default pool: generated modules fill that one, it takes every name once and for all, and what an
operator adds must neither clash with it nor stay when it is removed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool


class SchemaError(ValueError):
    """Descriptors that make no schema. `problems`: everything that is wrong with them, a sentence each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(" ".join(self.problems))


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """What can be read and written: `messages` has every message by full name, nested ones too, in the order of their
    names; `pool` has them, enums and extensions.
    """

    pool: DescriptorPool
    messages: dict[str, Descriptor]


def schema_of(files: Iterable[FileDescriptorProto]) -> Schema:
    """The schema of these files, each with a name of its own. Raises SchemaError when a file needs one that is not
    among them, files need each other in a circle, or protobuf takes one of them not.
    """
    by_name = {file.name: file for file in files}
    pool = DescriptorPool()
    problems: list[str] = []
    messages: dict[str, Descriptor] = {}
    for file in _in_order(by_name, problems):
        try:
            added: FileDescriptor = pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, KeyError, ValueError) as error:
            problems.append(f"{file.name}: {_plain(error)}.")
            continue
        for message in added.message_types_by_name.values():
            _collect(message, messages)
    if problems:
        raise SchemaError(problems)
    return Schema(pool, dict(sorted(messages.items())))


def _in_order(files: dict[str, FileDescriptorProto], problems: list[str]) -> list[FileDescriptorProto]:
    """The files, each behind those that it imports; `problems` gets what keeps one from being placed, and it, like
    those that import it, is left out.
    """
    ordered: list[FileDescriptorProto] = []
    fit: dict[str, bool] = {}
    for first in sorted(files):
        # A stack of our own: a chain of imports may be longer than the interpreter's.
        stack = [(first, iter(files[first].dependency))] if first not in fit else []
        opened = {first}
        well = {first: True}
        while stack:
            name, imports = stack[-1]
            for needed in imports:
                if needed in opened:
                    problems.append(f"{name}: it imports {needed}, which needs {name} itself.")
                    well[name] = False
                elif needed not in files:
                    problems.append(f"{name}: it imports {needed}, which is not there.")
                    well[name] = False
                elif needed not in fit:
                    opened.add(needed)
                    well[needed] = True
                    stack.append((needed, iter(files[needed].dependency)))
                    break
                else:
                    well[name] = well[name] and fit[needed]
            else:
                stack.pop()
                opened.discard(name)
                fit[name] = well[name]
                if stack:
                    well[stack[-1][0]] = well[stack[-1][0]] and well[name]
                if well[name]:
                    ordered.append(files[name])
    return ordered


def _collect(message: Descriptor, found: dict[str, Descriptor]) -> None:
    if message.GetOptions().map_entry:
        return
    found[message.full_name] = message
    for nested in message.nested_types:
        _collect(nested, found)


def _plain(error: Exception) -> str:
    """What protobuf says is wrong, on one line and not longer than a person reads."""
    return " ".join(str(error).split())[:300].rstrip(".")
