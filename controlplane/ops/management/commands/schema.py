"""`manage.py schema`: which descriptors Parley reads by; to add and remove some, and to see what they do not know."""

import mmap
from argparse import ArgumentParser
from itertools import islice
from pathlib import Path
from typing import Final

from django.core.management.base import BaseCommand, CommandError
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from controlplane.accounts.principal import SYSTEM
from controlplane.common.errors import ControlPlaneError
from controlplane.fitness.watch import PERIOD_S
from controlplane.schemas.files import set_in
from controlplane.schemas.following import schema_follow
from controlplane.schemas.selectors import sets_list, unknown_parts
from controlplane.schemas.services import SetRefused, set_add, set_remove
from xdscore.schema import shipped
from xdscore.schema.embedded import files_in
from xdscore.schema.pool import SchemaError
from xdscore.schema.sets import packed, read_set
from xdscore.schema.types_registry import schema

_MAX_SHOWN: Final = 100
# Envoy with its symbols has half a gigabyte.
_MAX_PROGRAM_BYTES: Final = 2 * 1024**3
_FOLLOWS: Final = f"Every process reads by it within {PERIOD_S:.0f} seconds."


class Command(BaseCommand):
    """Shows, adds, removes and checks sets of descriptors."""

    help = "The descriptors that Parley reads by (docs/reference/schema.md): list, add, remove, check."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The arguments of the command."""
        does = parser.add_subparsers(dest="does", required=True)
        does.add_parser("list", help="Every set, and which one Parley brings along.")
        add = does.add_parser("add", help="Add a set, or put it in the place of the one with its name.")
        add.add_argument("name", help="Its name; that of an Envoy is envoy-VERSION, such as envoy-1.41.0.")
        where = add.add_mutually_exclusive_group(required=True)
        where.add_argument(
            "file", nargs="?", help="A FileDescriptorSet: protoc --include_imports --descriptor_set_out."
        )
        where.add_argument("--from-envoy", metavar="PROGRAM", help="Read the set out of an Envoy; it is not run.")
        remove = does.add_parser("remove", help="Remove a set that was added.")
        remove.add_argument("name")
        does.add_parser("check", help="Show what of the stored resources is not known; exit code 1 when there is some.")

    def handle(self, *_arguments: object, **options: object) -> None:
        """Do what was asked. Raises CommandError with everything that is wrong."""
        name = str(options.get("name") or "")
        try:
            match options["does"]:
                case "list":
                    self._list()
                case "add":
                    self._add(name, str(options["file"] or ""), str(options["from_envoy"] or ""))
                case "remove":
                    set_remove(name=name, actor=SYSTEM)
                    self.stdout.write(f"{name} is removed. {_FOLLOWS.replace('by it', 'without it')}")
                case "check":
                    self._check()
        except (SetRefused, SchemaError) as error:
            raise CommandError("\n".join(["Nothing was changed.", *(f"  {each}" for each in error.problems)])) from None
        except ControlPlaneError as error:
            raise CommandError(error.detail) from None

    def _list(self) -> None:
        newest = shipped.names()[0]
        for each in sets_list():
            if each.is_own:
                came = f"added by {each.added_by} at {each.added_at:%Y-%m-%d %H:%M} UTC, sha256 {each.digest[:12]}"
            elif each.name == newest or each.name.startswith(shipped.REST):
                came = "brought along"
            else:
                came = "brought along, to compare with"
            self.stdout.write(f"{each.name}: {each.files:,} files, {each.messages:,} messages; {came}")

    def _add(self, name: str, file: str, program: str) -> None:
        files = _out_of(Path(program)) if program else set_in(Path(file))
        if set_add(name=name, files=files, actor=SYSTEM):
            self.stdout.write(f"{name} is added: {len(files):,} files. {_FOLLOWS}")
        else:
            self.stdout.write(f"{name} is there already, and the same. Nothing was changed.")

    def _check(self) -> None:
        schema_follow()
        found = list(islice(unknown_parts(schema()), _MAX_SHOWN + 1))
        for each in found[:_MAX_SHOWN]:
            place = each.place or "/"
            self.stdout.write(f"{each.environment}: {each.type} '{each.name}' has {each.what} at {place}")
        if len(found) > _MAX_SHOWN:
            self.stdout.write("And more.")
        if found:
            raise CommandError("Some stored resources have parts that are not known.", returncode=1)
        self.stdout.write("Everything that is stored is known.")


def _out_of(program: Path) -> list[FileDescriptorProto]:
    """The set that a program carries. Raises CommandError where there is none, SchemaError where it is not sound."""
    try:
        with program.open("rb") as file:
            if not 0 < program.stat().st_size <= _MAX_PROGRAM_BYTES:
                raise CommandError(f"{program} is empty, or larger than any Envoy.")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                files = files_in(content)
    except (OSError, ValueError) as error:
        raise CommandError(f"{program} cannot be read: {str(error).lower()}.") from None
    if "envoy/config/cluster/v3/cluster.proto" not in files:
        raise CommandError(f"{program} carries no descriptors of Envoy's API: is it the program itself, and no script?")
    return read_set(packed(files.values()))
