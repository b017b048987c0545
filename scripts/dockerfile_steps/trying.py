"""Run what the built image is for, as its own user where this machine lets us, and look at what it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.dockerfile_steps.building import Image
from scripts.dockerfile_steps.parsing import DockerfileError, Stage, healthcheck_command
from scripts.dockerfile_steps.running import Ids, ended

_COMMAND_WAIT_S: Final = 60.0
# Nothing of the build, of tests or of a person's own may be in the image.
_UNWANTED: Final = (".git", ".env", ".venv", ".parley", "tests", "docs", "scripts", "Dockerfile", "deploy/compose")


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of one command of the image: its exit status and what it printed."""

    command: tuple[str, ...]
    status: int
    output: str


def user_ids(stage: Stage) -> Ids:
    """The user and group of the USER instruction. Raises DockerfileError when it is root or not given in numbers."""
    user = stage.last("USER")
    uid, _, gid = user.text.partition(":")
    if not uid.isdecimal() or not gid.isdecimal() or int(uid) == 0 or int(gid) == 0:
        raise DockerfileError(f"Line {user.line}: USER is {user.text}; it must be two numbers, and not root's.")
    return Ids(int(uid), int(gid))


def tried(image: Image, stage: Stage, arguments: Sequence[str], *, variables: Mapping[str, str], ids: Ids) -> Trial:
    """Run the image's ENTRYPOINT with these arguments; returns what came of it."""
    return _tried(image, [*stage.last("ENTRYPOINT").words(), *arguments], variables, ids)


def health_tried(image: Image, stage: Stage, arguments: Sequence[str], *, ids: Ids) -> Trial:
    """Run the image's HEALTHCHECK with these arguments added; returns what came of it."""
    return _tried(image, [*healthcheck_command(stage.last("HEALTHCHECK")), *arguments], {}, ids)


def unwanted(image: Image) -> list[str]:
    """The files in the image's working directory that should not be there."""
    return [name for name in _UNWANTED if (image.here(".") / name).exists()]


def writable(image: Image, ids: Ids) -> list[Path]:
    """Files and directories of the program that the image's user could change, by their modes and owners."""
    found = []
    for root in (image.here("."), image.here("/opt/venv")):
        for path in (root, *root.rglob("*")):
            status = path.lstat()
            if not path.is_symlink() and (status.st_mode & 0o002 or status.st_uid == ids.uid):
                found.append(path)
    return found


def _tried(image: Image, command: Sequence[str], variables: Mapping[str, str], ids: Ids) -> Trial:
    environment = image.variables() | {"HOME": "/nonexistent"} | dict(variables)
    program = [_found(command[0], environment["PATH"]), *(image.mapped(word) for word in command[1:])]
    result = ended(program, directory=image.here("."), variables=environment, wait_s=_COMMAND_WAIT_S, ids=ids)
    return Trial(tuple(command), result.returncode, result.stdout)


def _found(program: str, path: str) -> str:
    for folder in path.split(":"):
        if (Path(folder) / program).exists():
            return str(Path(folder) / program)
    raise DockerfileError(f"{program} is nowhere in the image's PATH.")
