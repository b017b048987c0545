"""Descriptors that lie in a program: every C++ program that uses full protobuf, such as Envoy, carries those of its
own API as serialized files (`protoc` writes them into the code). So a proxy itself says what it knows.

Found by their shape: a name that ends in `.proto` as field 1, then fields of a `FileDescriptorProto` in rising order,
as `protoc` serializes them. The program is read and never run.
"""

import mmap
import re

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.message import DecodeError

_BEGIN = re.compile(
    rb"\x0a(?P<length>[\x05-\x7f]|[\x80-\xff][\x01\x02])(?P<name>[A-Za-z0-9_][A-Za-z0-9_/.+-]{0,300}?\.proto)"
)
# Field number -> wire type (descriptor.proto). A number that does not repeat ends the file when it comes again.
_WIRE = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2, 10: 0, 11: 0, 12: 2, 14: 0, 15: 2}
_ONCE = frozenset({1, 2, 8, 9, 12, 14})
# Public, weak and option imports stand behind the imports, out of the order of numbers.
_BETWEEN = frozenset({10, 11, 15})
_VARINT_BYTES = 5


def files_in(program: bytes | mmap.mmap) -> dict[str, FileDescriptorProto]:
    """The files of descriptors in a program, by name; of several of one name, the largest. Empty when there is none."""
    found: dict[str, FileDescriptorProto] = {}
    for match in _BEGIN.finditer(program):
        length, name = match["length"], match["name"]
        if len(name) != (length[0] & 0x7F) | (length[1] << 7 if len(length) > 1 else 0):
            continue
        try:
            file = FileDescriptorProto.FromString(program[match.start() : _end(program, match.start())])
        except DecodeError:
            continue
        before = found.get(file.name)
        if before is None or file.ByteSize() > before.ByteSize():
            found[file.name] = file
    return dict(sorted(found.items()))


def _end(program: bytes | mmap.mmap, start: int) -> int:
    """Where the file that begins at `start` ends: before what cannot be its next field."""
    place, last = start, 0
    while True:
        tag, after = _varint(program, place)
        number, wire = tag >> 3, tag & 7
        if _WIRE.get(number) != wire or (number in _ONCE and number == last):
            return place
        if number not in _BETWEEN:
            if number < last:
                return place
            last = number
        size, after = _varint(program, after)
        after += size if wire == 2 else 0  # 2: length-delimited
        if after > len(program):
            return place
        place = after


def _varint(program: bytes | mmap.mmap, place: int) -> tuple[int, int]:
    """The number at `place` and where the next byte is. Zero, which no field is tagged with, when there is none."""
    value = 0
    for index, byte in enumerate(program[place : place + _VARINT_BYTES]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, place + index + 1
    return 0, place
