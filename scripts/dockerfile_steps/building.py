"""Carry out the steps of a Dockerfile below a directory that stands for the image.

The base image is a virtual environment at the image's /usr/local. A command's absolute paths are those of the image
when the Dockerfile itself speaks of them (WORKDIR, COPY, ENV) and the machine's otherwise; steps that change the base
image's accounts or packages are named and left out.
"""

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from scripts.dockerfile_steps.context import context_files
from scripts.dockerfile_steps.parsing import DockerfileError, Instruction, Stage, expanded
from scripts.dockerfile_steps.running import ended

_BASE: Final = "/usr/local"
_BASE_PATH: Final = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_RUN_WAIT_S: Final = 300.0
# Commands that change what only an image has.
_IMAGE_ONLY: Final = {
    "groupadd": "adds a group to the base image",
    "useradd": "adds a user to the base image",
    "apt-get": "installs packages into the base image",
}
# Instructions that change no file; USER, ENTRYPOINT and HEALTHCHECK do not either, but `trying` follows them.
_TOLD: Final = dict.fromkeys(("CMD", "EXPOSE", "LABEL"), "describes the image to its engine")
# What the machine tells every program: where registries and certificates are.
_PASSED_ON: Final = re.compile(
    r"(PIP|UV|SSL|REQUESTS)_\w+|LANG|LC_ALL|HOME|HTTPS?_PROXY|NO_PROXY|https?_proxy|no_proxy"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction that was reached, and why it was not carried out (empty when it was)."""

    stage: str
    line: int
    text: str
    omitted: str = ""


@dataclass(slots=True)
class Image:
    """A stage while it is built. `places` are the paths that mean the image's, not the machine's."""

    root: Path
    places: frozenset[str]
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": _BASE_PATH})
    directory: str = "/"

    def here(self, path: str) -> Path:
        """The path on this machine of a path in the image."""
        return self.root / str(PurePosixPath(self.directory) / path).lstrip("/")

    def mapped(self, text: str) -> str:
        """A command or value with the image's paths replaced."""
        longest_first = sorted(map(re.escape, self.places), key=len, reverse=True)
        pattern = re.compile(rf"(?<![\w./-])({'|'.join(longest_first)})(?![\w.-])")
        return pattern.sub(lambda found: f"{self.root}{found[1]}", text)

    def variables(self) -> dict[str, str]:
        """The environment of the image's processes when they run on this machine."""
        passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
        return passed_on | {name: self.mapped(value) for name, value in self.environment.items()}


@dataclass(slots=True)
class Builder:
    """Builds every stage of a Dockerfile. `python` stands for the base image's interpreter."""

    context: Path
    work: Path
    python: str
    images: dict[str, Image] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def build(self, stages: Sequence[Stage]) -> Image:
        """Carry out all stages; returns the image of the last one. Raises DockerfileError."""
        places = frozenset(_places(stages))
        for stage in stages:
            self.images[stage.name] = image = self._base(stage, places)
            for instruction in stage.instructions:
                omitted = self._carry_out(image, instruction)
                self.steps.append(
                    Step(stage.name, instruction.line, f"{instruction.keyword} {instruction.text}", omitted)
                )
        return self.images[stages[-1].name]

    def _base(self, stage: Stage, places: frozenset[str]) -> Image:
        if re.fullmatch(r"python:3\.\d+(\.\d+)?-slim-\w+(@sha256:[0-9a-f]{64})?", stage.image) is None:
            raise DockerfileError(
                f"Stage {stage.name}: {stage.image} is no base image that this machine can stand for."
            )
        image = Image(self.work / stage.name, places)
        uses_pip = any("pip" in each.text for each in stage.instructions if each.keyword == "RUN")
        command = [self.python, "-m", "venv", *([] if uses_pip else ["--without-pip"]), str(image.here(_BASE))]
        _run(command, directory=self.work, variables=dict(os.environ), line=0)
        return image

    def _carry_out(self, image: Image, instruction: Instruction) -> str:
        """Carry out the instruction; returns the reason when that cannot be done here, else an empty text."""
        actions: Mapping[str, Callable[[Image, Instruction], str]] = {
            "ARG": _arg,
            "ENV": _env,
            "WORKDIR": _workdir,
            "COPY": self._copy,
            "RUN": _run_step,
        }
        action = actions.get(instruction.keyword)
        return action(image, instruction) if action is not None else _TOLD.get(instruction.keyword, "")

    def _copy(self, image: Image, instruction: Instruction) -> str:
        *sources, target = expanded(instruction.text, image.environment).split()
        into = target.endswith("/") or target == "." or len(sources) > 1
        destination = image.here(target)
        stage = instruction.flags.get("from")
        if stage is not None and stage not in self.images:
            raise DockerfileError(f"Line {instruction.line}: there is no stage {stage} before this line.")
        for source in sources:
            copied = (
                self._from_context(source, destination, into=into)
                if stage is None
                else _from_stage(self.images[stage], source, destination)
            )
            if not copied:
                raise DockerfileError(f"Line {instruction.line}: COPY finds no {source}; does .dockerignore hide it?")
        return ""

    def _from_context(self, source: str, destination: Path, *, into: bool) -> int:
        wanted = PurePosixPath(source)
        copied = 0
        for file in context_files(self.context):
            if file == wanted:
                target = destination / file.name if into else destination
            elif file.is_relative_to(wanted):
                target = destination / file.relative_to(wanted)
            else:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.context / file, target, follow_symlinks=False)
            copied += 1
        return copied


def _places(stages: Sequence[Stage]) -> Iterator[str]:
    """The absolute paths that WORKDIR, COPY and ENV of any stage name, and the base image's own."""
    yield _BASE
    for instruction in (each for stage in stages for each in stage.instructions):
        if instruction.keyword == "WORKDIR":
            yield instruction.text
        elif instruction.keyword == "COPY":
            yield from (word for word in instruction.words() if word.startswith("/"))
        elif instruction.keyword == "ENV":
            yield from (part for value in instruction.pairs().values() for part in value.split(":") if part[:1] == "/")


def _from_stage(image: Image, source: str, destination: Path) -> int:
    origin = image.here(source)
    if not origin.exists():
        return 0
    # Linked, not copied: the files are many and nobody changes them in place.
    shutil.copytree(origin, destination, symlinks=True, copy_function=os.link, dirs_exist_ok=True)
    return 1


def _arg(image: Image, instruction: Instruction) -> str:
    name, _, value = instruction.text.partition("=")
    image.environment.setdefault(name, expanded(value, image.environment))
    return ""


def _env(image: Image, instruction: Instruction) -> str:
    for name, value in instruction.pairs().items():
        image.environment[name] = expanded(value, image.environment)
    return ""


def _workdir(image: Image, instruction: Instruction) -> str:
    image.directory = str(PurePosixPath(image.directory) / expanded(instruction.text, image.environment))
    image.here(".").mkdir(parents=True, exist_ok=True)
    return ""


def _run_step(image: Image, instruction: Instruction) -> str:
    words = shlex.split(instruction.text)
    for word, reason in _IMAGE_ONLY.items():
        if word in words:
            return reason
    if "--owner" in words and os.geteuid() != 0:
        return "gives a directory to another user, which only root can"
    command = ["/bin/sh", "-ec", image.mapped(instruction.text)]
    _run(command, directory=image.here("."), variables=image.variables(), line=instruction.line)
    return ""


def _run(command: Sequence[str], *, directory: Path, variables: Mapping[str, str], line: int) -> None:
    result = ended(command, directory=directory, variables=variables, wait_s=_RUN_WAIT_S)
    if result.returncode:
        raise DockerfileError(
            f"Line {line}: {shlex.join(command)} ended with status {result.returncode}:\n{result.stdout}"
        )
