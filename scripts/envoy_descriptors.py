"""Make the descriptors that Parley brings along (xdscore/schema/shipped), from Envoys and from xds-protos.

    python -m scripts.envoy_descriptors /opt/envoy-1.40.0/envoy /opt/envoy-1.39.3/envoy …

Each Envoy's own descriptors are read out of the program, and it is asked for its version; what only xds-protos has, the
retired API and that of gRPC alone, is taken from the package that is installed. Equal programs and packages give equal
files.
"""

import ast
import importlib
import importlib.metadata
import lzma
import mmap
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

sys.path.insert(0, str(Path(__file__).parents[1]))

from xdscore.schema import shipped
from xdscore.schema.embedded import files_in
from xdscore.schema.pool import schema_of

Files = dict[str, FileDescriptorProto]

FOLDER = Path(shipped.__file__).parent
_VERSION = re.compile(r"/(\d+\.\d+\.\d+)/")
_GENERATED = re.compile(r"AddSerializedFile\((b'.*'|b\".*\")\)")
# What nothing needs: tests of the API itself, one of which cannot be loaded.
_TESTS = "test/"


def main(programs: list[str]) -> int:
    """Write the sets of these Envoys and of xds-protos beside the newest; returns the exit code."""
    if not programs:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    envoys: dict[tuple[int, ...], Files] = {}
    for program in map(Path, programs):
        version = version_of(program)
        envoys[tuple(map(int, version.split(".")))] = files = files_of(program)
        schema_of(files.values())
        _write(f"envoy-{version}", files.values())
    rest = only_in_package(envoys[max(envoys)])
    _write(f"{shipped.REST}-{importlib.metadata.version(shipped.REST)}", rest.values())
    return 0


def version_of(program: Path) -> str:
    """The version of an Envoy, such as 1.40.0, as it says itself."""
    done = subprocess.run(  # noqa: S603  the program that whoever makes the sets names
        [program, "--version"], capture_output=True, text=True, check=True, timeout=30
    )
    said = done.stdout
    match = _VERSION.search(said)
    if match is None:
        raise SystemExit(f"{program} does not say which version it is: {said!r}")
    return match[1]


def files_of(program: Path) -> Files:
    """The files of descriptors in a program."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return files_in(content)


def only_in_package(newest: Files) -> Files:
    """The files of xds-protos that the newest Envoy has not, with what they need from protobuf itself."""
    found: Files = {}
    for file in importlib.metadata.files(shipped.REST) or []:
        match = _GENERATED.search(file.read_text()) if file.name.endswith("_pb2.py") else None
        if match is not None:
            each = FileDescriptorProto.FromString(ast.literal_eval(match[1]))
            if each.name not in newest and not each.name.startswith(_TESTS):
                found[each.name] = each
    needed = {name for each in found.values() for name in each.dependency} - newest.keys() - found.keys()
    for name in sorted(needed):
        module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        found[name] = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    schema_of([*newest.values(), *found.values()])
    return found


def _write(name: str, files: Iterable[FileDescriptorProto]) -> None:
    data = FileDescriptorSet(file=sorted(files, key=lambda each: each.name)).SerializeToString(deterministic=True)
    packed = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
    (FOLDER / (name + shipped.ENDING)).write_bytes(packed)
    sys.stdout.write(f"{name}: {len(data):,} bytes, {len(packed):,} packed\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
