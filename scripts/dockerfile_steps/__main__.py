"""`python -m scripts.dockerfile_steps`: build, try, say what was exercised and what not. Exit status 1 on a failure."""

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from scripts.dockerfile_steps.building import Builder
from scripts.dockerfile_steps.parsing import DockerfileError, parse
from scripts.dockerfile_steps.running import CALLER, Ids, ended
from scripts.dockerfile_steps.trying import health_tried, tried, unwanted, user_ids, writable

ROOT: Final = Path(__file__).resolve().parents[2]
_COMMANDS: Final = (
    ("help",),
    ("check", "--fail-level", "WARNING"),
    ("config",),
    ("prepare",),
    ("check", "--database", "default"),
)


def base_python(version: str, ids: Ids) -> tuple[str, Ids]:
    """A Python interpreter of this version, and the user as whom it can run: the image's user if possible, else the
    caller.

    Raises DockerfileError when this machine has none.
    """
    own = str(Path(sys._base_executable).resolve())  # type: ignore[attr-defined]  # noqa: SLF001  the one below a venv
    candidates = (own, f"/usr/local/bin/python{version}", f"/usr/bin/python{version}")
    users = [ids, CALLER] if os.geteuid() == 0 else [CALLER]
    for user in users:
        for candidate in candidates:
            if _version(candidate, user) == version:
                return candidate, user
    raise DockerfileError(f"This machine has no Python {version} with ensurepip; tried {', '.join(candidates)}.")


def _version(python: str, ids: Ids) -> str:
    question = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = ended([python, "-c", question], directory=Path("/"), variables=os.environ, wait_s=30.0, ids=ids)
    except OSError:
        return ""
    return answer.stdout.strip()


def report(context: Path, work: Path) -> list[str]:
    """Build the image and try it; returns the problems found. Prints one line for each step and trial. Raises
    DockerfileError.
    """
    stages = parse((context / "Dockerfile").read_text(encoding="utf-8"))
    last = stages[-1]
    wanted = user_ids(last)
    python, ids = base_python(last.image.partition("-")[0].removeprefix("python:"), wanted)
    builder = Builder(context, work, python)
    image = builder.build(stages)
    for step in builder.steps:
        outcome = f"not exercised: {step.omitted}" if step.omitted else "exercised"
        _say(f"{step.stage:<8} {step.line:>3}  {step.text[:60]:<60}  {outcome}")
    problems = [f"{name} is in the image" for name in unwanted(image)]
    problems += [f"{path} can be changed by the image's user" for path in writable(image, wanted)]
    who = "the image's user" if ids == wanted else "the caller: no Python of this machine runs as the image's user"
    _say(f"\nCommands of the image, run as {who}:")
    home = {} if ids == wanted else {"PARLEY_HOME": str(work / "home")}
    for arguments in _COMMANDS:
        trial = tried(image, last, arguments, variables=home, ids=ids)
        _say(f"  {' '.join(trial.command):<60}  status {trial.status}")
        if trial.status:
            problems.append(f"{' '.join(trial.command)} ended with status {trial.status}:\n{trial.output}")
    trial = health_tried(image, last, ["web"], ids=ids)  # nothing serves here, so anything but "not well" is wrong
    _say(f"  {' '.join(trial.command):<60}  status {trial.status}")
    if trial.status != 1 or "does not answer" not in trial.output:
        problems.append(f"HEALTHCHECK ended with status {trial.status}:\n{trial.output}")
    return problems


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> int:
    """Build and try the image below a temporary directory, which is removed; returns the exit status."""
    work = Path(tempfile.mkdtemp(prefix="parley-image-"))
    work.chmod(0o755)  # the image's user has to get in
    try:
        problems = report(ROOT, work)
    except DockerfileError as error:
        problems = [str(error)]
    finally:
        shutil.rmtree(work, ignore_errors=True)
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
