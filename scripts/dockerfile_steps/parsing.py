"""Read a Dockerfile into stages of instructions. Pure.

Knows the instructions that Parley's Dockerfile uses and refuses every other one, so that none goes by unnoticed.
"""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

KNOWN: Final = frozenset(
    {"ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "EXPOSE", "FROM", "HEALTHCHECK", "LABEL", "RUN", "USER", "WORKDIR"}
)
_FLAG: Final = re.compile(r"--(?P<name>[a-z-]+)=(?P<value>\S+)\s*")
_VARIABLE: Final = re.compile(r"\$(?:\{(?P<braced>\w+)\}|(?P<plain>\w+))")
_FROM: Final = re.compile(r"(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)


class DockerfileError(Exception):
    """An instruction cannot be read or carried out; one sentence with the line's number."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile. `flags` are those before its arguments (`--from=builder`)."""

    line: int
    keyword: str
    text: str
    flags: Mapping[str, str]

    def words(self) -> list[str]:
        """The arguments, from their exec form or split as a shell does."""
        if not self.text.startswith("["):
            return shlex.split(self.text)
        try:
            return list(map(str, json.loads(self.text)))
        except ValueError as error:
            raise DockerfileError(f"Line {self.line}: {self.keyword} has no valid exec form: {error}.") from error

    def pairs(self) -> dict[str, str]:
        """The NAME=VALUE arguments of ENV and LABEL."""
        found = [word.partition("=") for word in self.words()]
        if not all(separator for _, separator, _ in found):
            raise DockerfileError(f"Line {self.line}: {self.keyword} must be written as NAME=VALUE.")
        return {name: value for name, _, value in found}


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions from one FROM to the next. `image` has its variables expanded."""

    name: str
    image: str
    instructions: tuple[Instruction, ...]

    def last(self, keyword: str) -> Instruction:
        """The last instruction with this keyword, which is the one in force. Raises DockerfileError when
        there is none.
        """
        for instruction in reversed(self.instructions):
            if instruction.keyword == keyword:
                return instruction
        raise DockerfileError(f"Stage {self.name} has no {keyword}.")


def parse(text: str) -> tuple[Stage, ...]:
    """The stages of a Dockerfile in order. Raises DockerfileError."""
    stages: list[Stage] = []
    defaults: dict[str, str] = {}  # of ARG before the first FROM: they count in FROM only
    for instruction in _instructions(text):
        if instruction.keyword == "FROM":
            stages.append(_stage(instruction, defaults, number=len(stages)))
        elif stages:
            last = stages[-1]
            stages[-1] = Stage(last.name, last.image, (*last.instructions, instruction))
        elif instruction.keyword == "ARG":
            name, _, value = instruction.text.partition("=")
            defaults[name] = value
        else:
            raise DockerfileError(f"Line {instruction.line}: {instruction.keyword} comes before the first FROM.")
    if not stages:
        raise DockerfileError("The Dockerfile has no FROM.")
    return tuple(stages)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """`text` with `$NAME` and `${NAME}` replaced; an unknown name is empty, as in Docker."""
    return _VARIABLE.sub(lambda found: variables.get(found["braced"] or found["plain"], ""), text)


def healthcheck_command(instruction: Instruction) -> list[str]:
    """The command of HEALTHCHECK. Raises DockerfileError when it is not in exec form, which needs no shell."""
    keyword, _, command = instruction.text.partition(" ")
    if keyword != "CMD" or not command.lstrip().startswith("["):
        raise DockerfileError(f"Line {instruction.line}: HEALTHCHECK must be CMD followed by a JSON list.")
    return Instruction(instruction.line, "HEALTHCHECK", command.lstrip(), {}).words()


def _stage(instruction: Instruction, defaults: Mapping[str, str], *, number: int) -> Stage:
    found = _FROM.fullmatch(expanded(instruction.text, defaults))
    if found is None:
        raise DockerfileError(f"Line {instruction.line}: FROM must be written as FROM image [AS name].")
    return Stage(found["name"] or str(number), found["image"], ())


def _instructions(text: str) -> list[Instruction]:
    found: list[Instruction] = []
    pending = ""
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue  # also inside a continued instruction, as Docker reads it
        start = start or number
        pending += line.rstrip().removesuffix("\\").strip() + " "
        if not line.rstrip().endswith("\\"):
            found.append(_instruction(pending.strip(), start))
            pending, start = "", 0
    if pending:
        raise DockerfileError(f"Line {start}: the instruction is continued and never ends.")
    return found


def _instruction(text: str, line: int) -> Instruction:
    keyword, _, rest = text.partition(" ")
    if keyword.upper() not in KNOWN:
        raise DockerfileError(f"Line {line}: {keyword} is not carried out here; known are {', '.join(sorted(KNOWN))}.")
    flags: dict[str, str] = {}
    rest = rest.strip()
    while (flag := _FLAG.match(rest)) is not None:
        flags[flag["name"]] = flag["value"]
        rest = rest[flag.end() :]
    return Instruction(line, keyword.upper(), rest, flags)
