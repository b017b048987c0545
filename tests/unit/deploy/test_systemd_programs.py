"""Programs beside the units: `parley` gives a command the environment of the processes; `backup` keeps few."""

import json
import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.systemd import ENVIRONMENT_FILE, FOLDER, outside, release_make

# Says what it was given, in place of manage.py.
TELLS = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()]))"
NAMES = [f"parley-2026-11-{day:02}T023000Z.backup" for day in range(1, 6)]


@dataclass(frozen=True, slots=True)
class Installed:
    """A release, and the environment file that its wrapper reads."""

    release: Path
    file: Path

    def parley(self, *arguments: str, directory: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run the wrapper by the link that leads to it."""
        command = [str(self.release.parent / "bin" / "parley"), *arguments]
        return subprocess.run(
            command, cwd=directory, env=outside() | variables, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    file = tmp_path / "parley.env"
    file.write_text(
        "# a comment\n\n; another\n"
        'DATABASE_URL="postgres://parley:a=b$c`d@h:1/n?x=1"\n'
        "PARLEY_PUBLIC_URL='https://p.example'\n"
        "PARLEY_ADS_AUTH=none",  # the last line has no end
        encoding="utf-8",
    )
    me = pwd.getpwuid(os.geteuid()).pw_name
    release = release_make(tmp_path / "release", {ENVIRONMENT_FILE: str(file), "user=parley": f"user={me}"})
    (release / "manage.py").unlink()
    (release / "manage.py").write_text(TELLS, encoding="utf-8")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "parley").symlink_to(release / "deploy" / "systemd" / "parley")
    return Installed(release, file)


def test_parley__arguments_and_directory__reach_the_command_as_they_are(installed: Installed, tmp_path: Path) -> None:
    elsewhere = tmp_path / "a directory"
    elsewhere.mkdir()
    arguments = ["backup", "a file", '"', "$HOME", "", "-x", "*"]

    told = installed.parley(*arguments, directory=elsewhere)

    assert told.stderr == ""
    got, _, directory = json.loads(told.stdout)
    assert (got, directory) == (arguments, str(elsewhere))


def test_parley__environment__is_that_of_the_processes_and_nothing_of_the_callers(
    installed: Installed, tmp_path: Path
) -> None:
    told = installed.parley(
        "config",
        directory=tmp_path,
        PARLEY_ADS_AUTH="mtls",
        PARLEY_INSECURE="1",
        PYTHONPATH="/nowhere",
        DJANGO_SETTINGS_MODULE="other",
    )

    _, variables, _ = json.loads(told.stdout)
    assert variables["DATABASE_URL"] == "postgres://parley:a=b$c`d@h:1/n?x=1"
    assert variables["PARLEY_PUBLIC_URL"] == "https://p.example"
    assert variables["PARLEY_ADS_AUTH"] == "none"
    assert variables["PARLEY_HOME"] == "/var/lib/parley"
    assert {"PARLEY_INSECURE", "PYTHONPATH", "DJANGO_SETTINGS_MODULE", "_PARLEY_ALONE"} & set(variables) == set()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("export A=secret", "line 2: not NAME="),
        ("secret", "line 2: not NAME="),
        ("A-B=secret", "line 2: not NAME="),
        ('A="sec\\"ret"', "line 2: A has a backslash"),
        ('A="secret', "line 2: A has a quotation mark"),
        ('A="sec" "ret"', "line 2: A has a quotation mark"),
    ],
)
def test_parley__line_that_systemd_may_read_otherwise__is_refused_by_its_number_and_not_shown(
    installed: Installed, tmp_path: Path, line: str, said: str
) -> None:
    installed.file.write_text(f"PARLEY_ADS_AUTH=none\n{line}\n", encoding="utf-8")

    refused = installed.parley("config", directory=tmp_path)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr
    assert "sec" not in refused.stderr.replace(str(tmp_path), "")


def test_parley__for_somebody_else__says_how_to_run_it(installed: Installed, tmp_path: Path) -> None:
    programs = installed.release / "deploy" / "systemd"
    (programs / "parley").write_text((FOLDER / "parley").read_text().replace(ENVIRONMENT_FILE, str(tmp_path / "none")))

    refused = installed.parley("config", directory=tmp_path)

    assert refused.returncode == 2
    assert refused.stderr == f"parley: {tmp_path}/none cannot be read. Run this as root: sudo parley ...\n"


def test_run__current_is_pointed_elsewhere__goes_on_with_the_release_it_was_started_from(tmp_path: Path) -> None:
    release = release_make(tmp_path / "releases" / "one", {})
    (tmp_path / "current").symlink_to(release)
    command = [str(tmp_path / "current" / "deploy" / "systemd" / "run"), "-c", TELLS, "a b"]

    told = subprocess.run(command, env=outside(), capture_output=True, text=True, timeout=60, check=True)

    arguments, _, directory = json.loads(told.stdout)
    assert (arguments, directory) == (["a b"], str(release))
    where = subprocess.run(
        [*command[:2], "import sys; print(sys.executable)"], env=outside(), capture_output=True, text=True, check=True
    )
    assert where.stdout == f"{release}/.venv/bin/python\n"


# Backups, of a SQLite database: what is written is the product's affair, what stays is that of this program.


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("home")
    command = [sys.executable, "manage.py", "prepare", "--verbosity", "0"]
    subprocess.run(command, cwd=FOLDER.parents[1], env=outside() | {"PARLEY_HOME": str(path)}, check=True, timeout=60)
    return path


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    """A directory with five backups, what a killed one left, and what is somebody else's."""
    release_make(tmp_path / "release", {})
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in (*NAMES, f".{NAMES[0]}.part", "parley-before-the-move.backup", "notes.txt"):
        (folder / name).write_text(name)
    return folder


def _backup(folder: Path, home: Path, kept: str) -> "subprocess.CompletedProcess[str]":
    command = [str(folder.parent / "release" / "deploy" / "systemd" / "backup"), str(folder), kept]
    environment = outside() | {"PARLEY_HOME": str(home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_backup__that_is_written__leaves_the_newest_and_what_is_not_its_own(backups: Path, home: Path) -> None:
    done = _backup(backups, home, "3")

    assert done.returncode == 0, done.stderr
    left = sorted(file.name for file in backups.iterdir())
    (new,) = [name for name in left if name not in {*NAMES, "notes.txt", "parley-before-the-move.backup"}]
    assert left == sorted([*NAMES[-2:], new, "notes.txt", "parley-before-the-move.backup"])
    assert new > NAMES[-1]
    assert (backups / new).stat().st_mode & 0o077 == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines()[1:]] == [
        str(backups / name) for name in NAMES[:3]
    ]


def test_backup__that_fails__deletes_nothing(backups: Path, tmp_path: Path) -> None:
    before = sorted(file.name for file in backups.iterdir())

    failed = _backup(backups, tmp_path / "no home", "1")

    assert failed.returncode != 0
    assert "There is no database" in failed.stderr
    assert sorted(file.name for file in backups.iterdir()) == before


@pytest.mark.parametrize("kept", ["0", "", "-1", "two", "007"])
def test_backup__number_that_is_none__is_refused_before_anything_is_done(backups: Path, home: Path, kept: str) -> None:
    before = sorted(file.name for file in backups.iterdir())

    refused = _backup(backups, home, kept)

    assert refused.returncode == 2
    assert f"KEPT is '{kept}'" in refused.stderr
    assert sorted(file.name for file in backups.iterdir()) == before


def test_backup__of_no_directory__is_refused(backups: Path, home: Path) -> None:
    shutil.rmtree(backups)

    refused = _backup(backups, home, "3")

    assert (refused.returncode, refused.stderr) == (2, f"There is no directory '{backups}'.\n")
