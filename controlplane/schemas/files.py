"""Reads sets of descriptors from files of this machine."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from controlplane.common.principal_ids import Actor
from controlplane.schemas.services import SetRefused, set_add
from xdscore.schema.pool import SchemaError
from xdscore.schema.sets import MAX_BYTES, read_set

SUFFIX: Final = ".binpb"


def set_in(file: Path) -> list[FileDescriptorProto]:
    """The set in a file. Raises SchemaError where it cannot be read or is none."""
    try:
        with file.open("rb") as content:
            return read_set(content.read(MAX_BYTES + 1))
    except OSError as error:
        raise SchemaError([f"{file} cannot be read: {(error.strerror or str(error)).lower()}."]) from None


def sets_ensure(where: Path, actor: Actor) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Add the set in a file NAME.binpb, or those in a folder of such files, each under its name and in place of the one
    with that name; a set that is there already is left as it is, and none is removed. Returns the names of those that
    were added or replaced, and a sentence about each thing that is wrong with the others.
    """
    added: list[str] = []
    problems: list[str] = []
    for file in _files(where, problems):
        name = file.name.removesuffix(SUFFIX)
        try:
            if set_add(name=name, files=set_in(file), actor=actor):
                added.append(name)
        except (SetRefused, SchemaError) as error:
            problems += [f"{file.name}: {each}" for each in error.problems]
    return tuple(added), tuple(problems)


def _files(where: Path, problems: list[str]) -> Iterator[Path]:
    try:
        found = sorted(where.iterdir()) if where.is_dir() else [where]
    except OSError as error:
        problems.append(f"{where} cannot be read: {(error.strerror or str(error)).lower()}.")
        return
    sets = [each for each in found if each.name.endswith(SUFFIX)]
    if not sets:
        problems.append(f"{where} is neither a file NAME{SUFFIX} nor a folder with one.")
    yield from sets
