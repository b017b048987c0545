"""`python -m bench.beside REVISION SCENARIO [PARAMETER=NUMBER ...]`: the ratios of these sources beside those of
another revision, measured in turn in the same minutes.

A ratio of product and floor is not the same on every machine, nor in every hour of a shared one; what two revisions
measure in turn can be compared. The exit status is 1 when a ratio is worse than that of the revision by more than the
tolerance.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.__main__ import OUT
from bench.ratios import Run, Turn, Worse, lines, run_of, slower

_ROOT: Final = Path(__file__).parent.parent
# While something seems to be worse, more turns are measured.
_TURNS: Final = 5
_MOST_TURNS: Final = 13
TOLERANCE: Final = 0.10
_ROUNDS: Final = "rounds="


def main(arguments: Sequence[str]) -> int:
    """Measure both and compare; returns the exit status."""
    if len(arguments) < 2:
        print("Say a revision and scenarios: python -m bench.beside HEAD~1 fan-out clients=500", file=sys.stderr)
        return 2
    revision, *what = arguments
    return 1 if beside(revision, what) else 0


def beside(revision: str, what: Sequence[str], *, only: Collection[tuple[str, str]] | None = None) -> list[Worse]:
    """Measure scenarios, given as the arguments of a run, at this revision and here in turn, and print what was found;
    returns what is worse here. `only`: the ratios to compare, each as (scenario, name); None: all.

    Rounds are one turn each: new processes, a few seconds after those that they are compared with. Raises
    CalledProcessError where the revision is not in this clone, or a run fails.
    """
    short = [f"{_ROUNDS}1" if each.startswith(_ROUNDS) else each for each in what]
    turns: list[Turn] = []
    found: list[Worse] = []
    with _checkout(revision) as other, _kept(OUT):
        while len(turns) < _MOST_TURNS:
            turns.append(_turn(other, short, ours_first=len(turns) % 2 == 1))
            found = slower(turns, tolerance=TOLERANCE, only=only)
            print(f"Turn {len(turns)}:", *(map(str, found) if found else ("nothing is worse.",)), flush=True)
            if len(turns) >= _TURNS and not found:
                break
    print("\n".join(lines(turns, revision)))
    nothing = f"Nothing is worse than at {revision} by more than {TOLERANCE:.0%} in {len(turns)} turns."
    print("\n".join(map(str, found)) or nothing)
    return found


@contextmanager
def _kept(path: Path) -> Iterator[None]:
    """Put back at the end of the block what the file has now: what a whole run measured, not what a turn did."""
    before = path.read_bytes() if path.exists() else None
    try:
        yield
    finally:
        if before is not None:
            path.write_bytes(before)


@contextmanager
def _checkout(revision: str) -> Iterator[Path]:
    """The sources of a revision in a folder of their own, until the end of the block."""
    with tempfile.TemporaryDirectory(prefix="parley-beside-") as folder:
        place = Path(folder) / "sources"
        _git("worktree", "add", "--detach", "--quiet", str(place), revision)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=_ROOT, check=True)  # noqa: S603, S607 - our own repository


def _turn(other: Path, what: Sequence[str], *, ours_first: bool) -> Turn:
    """A run of each. Which of them is first matters where the machine is slow every other half minute."""
    if ours_first:
        ours = _measured(_ROOT, what)
        return _measured(other, what), ours
    return _measured(other, what), _measured(_ROOT, what)


def _measured(sources: Path, what: Sequence[str]) -> Run:
    command = [sys.executable, "-m", "bench", *what]
    subprocess.run(command, cwd=sources, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 - our own program
    return run_of(json.loads((sources / OUT.relative_to(_ROOT)).read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
