"""The units of deploy/systemd, read as systemd reads them as far as they use it, and what it would start."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "deploy" / "systemd"
RELEASE: Final = "/opt/parley/current"
ENVIRONMENT_FILE: Final = "/etc/parley/parley.env"

needed = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd is not installed (apt-get install systemd), so that it judged no unit",
)

Settings = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Unit:
    """One systemd unit with its drop-ins. `settings` has the values of each name in their order; an empty one forgets
    those before it.
    """

    name: str
    settings: Settings

    def one(self, name: str) -> str:
        """The value of a setting that counts, which is the last; empty where there is none."""
        return self.settings.get(name, ("",))[-1]

    def words(self, name: str) -> list[str]:
        """The words of all values of a setting."""
        return [word for value in self.settings.get(name, ()) for word in shlex.split(value)]

    def command(self, instance: str = "", variables: Mapping[str, str] | None = None) -> list[str]:
        """The words of ExecStart, with its specifiers and variables replaced."""
        line = specified(self.one("ExecStart"), instance)
        for key, value in (variables or {}).items():
            line = line.replace(f"${{{key}}}", value)
        return shlex.split(line)

    def environment(self, instance: str = "", root: Path = Path("/")) -> dict[str, str]:
        """The environment variables that the unit gives its process; files are looked for below `root`."""
        found = dict(word.split("=", 1) for word in self.words("Environment"))
        for value in self.settings.get("EnvironmentFile", ()):
            file = root / specified(value, instance).removeprefix("-").removeprefix("/")
            if file.exists() or not value.startswith("-"):
                found |= variables_of(file.read_text(encoding="utf-8"))
        unset = set(self.words("UnsetEnvironment"))
        return {name: specified(value, instance) for name, value in found.items() if name not in unset}


def specified(text: str, instance: str) -> str:
    """The text with systemd's specifiers `%i` and `%%` replaced."""
    return text.replace("%i", instance).replace("%%", "%")


def variables_of(text: str) -> dict[str, str]:
    """The variables of an environment file with this text."""
    lines = [line.partition("=") for line in text.splitlines() if line and not line.startswith(("#", ";"))]
    return {name: shlex.split(value)[0] for name, _, value in lines}


def own_settings(file: Path) -> dict[str, tuple[str, ...]]:
    """The settings of one file, of whichever section: no name is used in two of them."""
    found: dict[str, tuple[str, ...]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "[")):
            name, _, value = line.partition("=")
            found[name] = (*found.get(name, ()), value) if value else ("",)
    return found


def unit(name: str, *drop_ins: Path) -> Unit:
    """A unit of the folder with the drop-in of all units, and with these."""
    settings = own_settings(FOLDER / name)
    for file in (*sorted((FOLDER / "parley-.service.d").iterdir()), *drop_ins):
        for key, values in own_settings(file).items():
            settings[key] = values if values == ("",) else (*settings.get(key, ()), *values)
    return Unit(name, settings)


def unit_names() -> list[str]:
    """The names of all service files of the folder."""
    return sorted(file.name for file in FOLDER.glob("*.service"))


def release_make(folder: Path, replaced: Mapping[str, str]) -> Path:
    """Make a release as it is installed: this checkout and this Python by links, the programs of deploy/systemd as
    files, in which `replaced` (paths of the installation) stand for others.
    """
    folder.mkdir(parents=True)
    for name in ("manage.py", "adsserver", "controlplane", "xdscore", "templates", "static"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(sys.prefix)
    programs = folder / "deploy" / "systemd"
    programs.mkdir(parents=True)
    for name in ("run", "backup", "parley"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        for old, new in replaced.items():
            text = text.replace(old, new)
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod((FOLDER / name).stat().st_mode)
    return folder


def outside() -> dict[str, str]:
    """The environment variables that systemd itself sets for a process of ours."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
