"""Carry out the Dockerfile's steps without a container engine, and run what the image is for as its own user.

`python -m scripts.dockerfile_steps` prints one line for each step, with the reason where one was not exercised, and one
for each command; exit status 1 on a problem. Bubblewrap (`bwrap`) lays the directories of the image over those of this
machine, so that a step runs as it is written. What is missing is the base image: its place at /usr/local takes a
virtual environment of a Python of this machine, and nothing can be added to its accounts and packages.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import PathSpec, Pattern
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

ROOT: Final = Path(__file__).resolve().parents[1]
_BASE: Final = "usr/local"
_OWN: Final = ("build", "opt", "srv", "tmp", "var")
"""Directories below / that are the image's alone, beside `_BASE`; of the others it sees those of this machine."""
_OF_THE_KERNEL: Final = ("dev", "proc", "sys")
_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_ROOT_IDS: Final = (0, 0)
_WAIT_S: Final = 300.0
_KNOWN: Final = frozenset(
    {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "USER", "WORKDIR"}
)
# Words of steps that only an engine can carry out, and of instructions that change no file.
_LEFT_OUT: Final = {
    "groupadd": "adds a group to the base image",
    "useradd": "adds a user to the base image",
    "apt-get": "installs packages into the base image",
    "--owner": "gives a directory to another user, which only an engine can",
}
_TOLD: Final = {"CMD", "EXPOSE", "LABEL"}
# What the machine tells every program: where registries and certificates are.
_PASSED_ON: Final = re.compile(
    r"(PIP|UV|SSL|REQUESTS)_\w+|LANG|LC_ALL|HOME|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy"
)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
# Nothing of the build, of tests or of a person's own may be in the image.
_UNWANTED: Final = (".git", ".env", ".venv", ".parley", "tests", "docs", "scripts", "Dockerfile", "deploy/compose")
# What the image must be able to do, one after the other, with the same volume.
COMMANDS: Final = ("help", "check --fail-level WARNING", "config", "prepare", "check --database default")


class DockerfileError(Exception):
    """A step that cannot be read or carried out; one sentence that names it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction. `flags` are those before its arguments (`--from=builder`)."""

    keyword: str
    text: str
    flags: Mapping[str, str] = field(default_factory=dict)

    def words(self) -> list[str]:
        """The arguments, of the exec form or split as a shell does."""
        try:
            return list(map(str, json.loads(self.text))) if self.text.startswith("[") else shlex.split(self.text)
        except ValueError as error:
            raise DockerfileError(f"{self} has no valid exec form: {error}.") from error

    def left_out(self) -> str:
        """Why only an engine can carry this out; empty where that is not so."""
        if self.keyword == "RUN":
            return next((reason for word, reason in _LEFT_OUT.items() if word in self.words()), "")
        return "describes the image to its engine" if self.keyword in _TOLD else ""

    def __str__(self) -> str:
        return f"{self.keyword} {self.text}"


@dataclass(frozen=True, slots=True)
class Stage:
    """What begins with one FROM."""

    name: str
    image: str
    steps: tuple[Step, ...]

    def last(self, keyword: str) -> Step:
        """The instruction of a kind that is in force at the end. Raises DockerfileError."""
        found = [step for step in self.steps if step.keyword == keyword]
        if not found:
            raise DockerfileError(f"Stage {self.name} has no {keyword}.")
        return found[-1]

    def user(self) -> tuple[int, int]:
        """The numbers of USER. Raises DockerfileError when it is root or not given in numbers."""
        step = self.last("USER")
        uid, _, gid = step.text.partition(":")
        if not uid.isdecimal() or not gid.isdecimal() or int(uid) == 0 or int(gid) == 0:
            raise DockerfileError(f"{step}: it must be two numbers, and not root's.")
        return int(uid), int(gid)

    def health(self) -> list[str]:
        """The command of HEALTHCHECK. Raises DockerfileError when it is not in exec form, which needs no shell."""
        step = self.last("HEALTHCHECK")
        keyword, _, command = step.text.partition(" ")
        if keyword != "CMD" or not command.lstrip().startswith("["):
            raise DockerfileError(f"{step}: it must be CMD followed by a JSON list.")
        return Step("HEALTHCHECK", command.lstrip()).words()


@dataclass(slots=True)
class Image:
    """A stage as far as it is built: its files lie below `root`."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _PATH})
    directory: str = "/"

    def here(self, path: str) -> Path:
        """Where on this machine a path of the image is."""
        return self.root / str(PurePosixPath(self.directory) / path).lstrip("/")

    def ended(
        self, command: Sequence[str], ids: tuple[int, int] = _ROOT_IDS, volume: str = ""
    ) -> "subprocess.CompletedProcess[str]":
        """The command after its end, with both outputs in `stdout`. With a `volume` as an engine runs it: without a
        network, and only what lies below that path can be written.
        """
        own = {each.name for each in self.root.iterdir()} - {"usr"}
        seen = sorted({each.name for each in Path("/").iterdir()} - own - set(_OF_THE_KERNEL))
        uid, gid = ids
        walls = ["bwrap", "--die-with-parent", "--unshare-user", "--uid", str(uid), "--gid", str(gid)]
        walls += ["--proc", "/proc", "--dev", "/dev", "--chdir", self.directory]
        for name in seen:
            walls += ["--ro-bind", f"/{name}", f"/{name}"]
        for name in (*sorted(own), _BASE):
            walls += ["--ro-bind" if volume else "--bind", str(self.root / name), f"/{name}"]
        if volume:
            walls += ["--unshare-net", "--bind", str(self.here(volume)), volume, "--tmpfs", "/tmp"]  # noqa: S108  its own
        else:  # where pip and uv keep what they have downloaded before
            walls += ["--bind-try", *2 * [str(Path.home() / ".cache")]]
        passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        return _ended([*walls, *command], {**passed_on, **self.environment})


@dataclass(slots=True)
class Builder:
    """Builds the stages of a Dockerfile. `told` has each step and why it was left out, empty where it was not."""

    context: Path
    work: Path
    images: dict[str, Image] = field(default_factory=dict)
    told: list[tuple[str, Step, str]] = field(default_factory=list)

    def build(self, stages: Sequence[Stage]) -> Image:
        """Carry out all stages; the last one's image. Raises DockerfileError."""
        for stage in stages:
            self.images[stage.name] = image = self._base(stage)
            for step in stage.steps:
                left_out = step.left_out()
                if not left_out:
                    self._carry_out(image, step)
                self.told.append((stage.name, step, left_out))
        return self.images[stages[-1].name]

    def _base(self, stage: Stage) -> Image:
        version = re.fullmatch(r"python:(3\.\d+)-slim-\w+(@sha256:[0-9a-f]{64})?", stage.image)
        if version is None or version[1] != f"{sys.version_info[0]}.{sys.version_info[1]}":
            raise DockerfileError(f"Stage {stage.name}: this Python cannot stand for {stage.image}.")
        image = Image(self.work / stage.name)
        for name in (*_OWN, _BASE):
            (image.root / name).mkdir(parents=True)
        uses_pip = any("pip" in step.text for step in stage.steps if step.keyword == "RUN")
        own: str = sys._base_executable  # type: ignore[attr-defined]  # noqa: SLF001  the one below a venv
        made = _ended([own, "-m", "venv", *([] if uses_pip else ["--without-pip"]), str(image.here(_BASE))], os.environ)
        if made.returncode:
            raise DockerfileError(f"Stage {stage.name}: no virtual environment can be made:\n{made.stdout}")
        return image

    def _carry_out(self, image: Image, step: Step) -> None:
        match step.keyword:
            case "ARG":
                name, _, value = step.text.partition("=")
                image.environment.setdefault(name, expanded(value, image.environment))
            case "ENV":
                for name, _, value in (word.partition("=") for word in step.words()):
                    image.environment[name] = expanded(value, image.environment)
            case "WORKDIR":
                image.directory = str(PurePosixPath(image.directory) / step.text)
                image.here(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(image, step)
            case "RUN":
                result = image.ended(["/bin/sh", "-ec", step.text])
                if result.returncode:
                    raise DockerfileError(f"{step} ended with status {result.returncode}:\n{result.stdout}")

    def _copy(self, image: Image, step: Step) -> None:
        *sources, target = step.words()
        stage = step.flags.get("from")
        if stage is not None and stage not in self.images:
            raise DockerfileError(f"{step}: there is no stage {stage} before it.")
        files = tuple(context_files(self.context)) if stage is None else ()
        for source in sources:
            if stage is not None:
                origin = self.images[stage].here(source)
                # Linked, not copied: the files are many and nobody changes them in place.
                shutil.copytree(origin, image.here(target), symlinks=True, copy_function=os.link, dirs_exist_ok=True)
                continue
            found = [file for file in files if file.is_relative_to(source)]
            if not found:
                raise DockerfileError(f"{step}: finds no {source}; does .dockerignore hide it?")
            for file in found:
                copy = image.here(target) / (file.name if str(file) == source else file.relative_to(source))
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.context / file, copy)


def parse(text: str) -> tuple[Stage, ...]:
    """The stages of a Dockerfile in order; ARG before the first FROM counts in FROM only. Raises DockerfileError."""
    lines = (line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    whole = re.sub(r"\s*\\\n", " ", "\n".join(lines))
    stages: list[Stage] = []
    defaults: dict[str, str] = {}
    for step in map(_step, whole.splitlines()):
        if step.keyword == "FROM":
            image, _, name = expanded(step.text, defaults).partition(" AS ")
            stages.append(Stage(name, image, ()))
        elif stages:
            stages[-1] = Stage(stages[-1].name, stages[-1].image, (*stages[-1].steps, step))
        else:
            name, _, defaults[name] = step.text.partition("=")
    return tuple(stages)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`text` with `$NAME` and `${NAME}` replaced; an unknown name is empty, as in Docker."""
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), text)


def context_files(root: Path) -> Iterator[PurePosixPath]:
    """The files that a build of the directory `root` would send, relative to it: those its .dockerignore leaves."""
    lines = (root / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in ignored(lines).match_tree_files(root, follow_links=False, negate=True):
        yield PurePosixPath(name)


def ignored(lines: Sequence[str]) -> "PathSpec[Pattern]":
    """The rules of a .dockerignore: as in .gitignore the last one that speaks of a path, or of a directory above it,
    counts; but each begins at the root.
    """
    patterns = (line.strip() for line in lines if line.strip() and not line.startswith("#"))
    return PathSpec.from_lines(GitIgnoreSpecPattern, (re.sub(r"^(!?)/?", r"\1/", each) for each in patterns))


def unwanted(image: Image) -> list[str]:
    """What lies in the image's working directory and should not."""
    return [name for name in _UNWANTED if (image.here(".") / name).exists()]


def writable(image: Image) -> list[Path]:
    """Files and directories of the program that anybody could change."""
    paths = (path for root in (image.here("."), image.here("/opt/venv")) for path in (root, *root.rglob("*")))
    return [path for path in paths if not path.is_symlink() and path.stat().st_mode & 0o002]


def problems_of(context: Path, work: Path) -> list[str]:
    """Build and try the image; what is wrong with it. Prints a line for each step and trial. Raises DockerfileError."""
    stages = parse((context / "Dockerfile").read_text(encoding="utf-8"))
    builder, last = Builder(context, work), stages[-1]
    image, ids = builder.build(stages), last.user()
    for stage, step, left_out in builder.told:
        _say(f"{stage:<8} {str(step)[:80]:<80}  {f'not exercised: {left_out}' if left_out else 'exercised'}")
    problems = [f"{name} is in the image" for name in unwanted(image)]
    problems += [f"{path} can be changed by anybody" for path in writable(image)]
    volume = image.environment["PARLEY_HOME"]
    image.here(volume).mkdir(parents=True)
    trials = [(f"{' '.join(last.last('ENTRYPOINT').words())} {each}", 0, "") for each in COMMANDS]
    # Nothing serves here, so anything but "not well" is wrong.
    trials.append((f"{shlex.join(last.health())} web", 1, "does not answer"))
    _say("\nCommands of the image, run as its user:")
    for command, status, said in trials:
        result = image.ended(shlex.split(command), ids, volume)
        _say(f"  {command:<80}  status {result.returncode}")
        if result.returncode != status or said not in result.stdout:
            problems.append(f"{command} ended with status {result.returncode}:\n{result.stdout}")
    return problems


def _step(line: str) -> Step:
    keyword, _, text = line.partition(" ")
    if keyword not in _KNOWN:
        raise DockerfileError(f"{line}: not carried out here; known are {', '.join(sorted(_KNOWN))}.")
    flags: dict[str, str] = {}
    while text.startswith("--") and keyword != "RUN":
        flag, _, text = text.partition(" ")
        name, _, flags[name] = flag.removeprefix("--").partition("=")
    return Step(keyword, text.strip(), flags)


def _ended(command: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603  commands of our own Dockerfile
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_WAIT_S,
        check=False,
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Everything, below a temporary directory that is removed."""
    work = Path(tempfile.mkdtemp(prefix="parley-image-"))
    try:
        problems = problems_of(ROOT, work)
    except DockerfileError as error:
        problems = [str(error)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
