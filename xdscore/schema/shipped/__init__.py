"""The descriptors that Parley brings along: files beside this one, of which README.md says what they are."""

import lzma
import re
from functools import cache
from importlib import resources
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

ENDING: Final = ".binpb.xz"
REST: Final = "xds-protos"
_ENVOY = re.compile(r"envoy-(\d+)\.(\d+)\.(\d+)")


@cache
def names() -> tuple[str, ...]:
    """The names of the sets, those of Envoys first, the newest of them at the head: `envoy-1.40.0`."""
    found = [each.name.removesuffix(ENDING) for each in resources.files(__name__).iterdir() if ENDING in each.name]
    return tuple(sorted(found, key=_age))


def files_of(name: str) -> list[FileDescriptorProto]:
    """The files of one of the sets."""
    packed = resources.files(__name__).joinpath(name + ENDING).read_bytes()
    return list(FileDescriptorSet.FromString(lzma.decompress(packed)).file)


def standard() -> list[FileDescriptorProto]:
    """What is known where nobody adds anything: the API of the newest Envoy, and what else xds-protos has."""
    newest, rest = names()[0], next(name for name in names() if name.startswith(REST))
    return [*files_of(newest), *files_of(rest)]


def _age(name: str) -> tuple[int, ...]:
    match = _ENVOY.fullmatch(name)
    return (0, *(-int(part) for part in match.groups())) if match else (1,)
