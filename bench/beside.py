"""`python -m bench.beside REVISION SCENARIO [PARAMETER=NUMBER ...]`: the ratios of these sources beside those of
another revision, measured in turn in the same hour.

A ratio of product and floor is not the same on every machine, nor in every hour of a shared one; what two revisions
measure in turn is. The exit status is 1 when a ratio is worse than that of the revision by more than the tolerance.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.__main__ import OUT
from bench.guard import Ratios, ratios_of, worse

_ROOT: Final = Path(__file__).parent.parent
# Each of the two is measured so often, in turn; of a ratio the lowest counts, for a neighbour only ever adds to it.
_TURNS: Final = 2
TOLERANCE: Final = 0.10


def lowest(runs: Sequence[Ratios]) -> dict[str, dict[str, float]]:
    """Each ratio as low as any of these runs had it."""
    found: dict[str, dict[str, float]] = {}
    for run in runs:
        for scenario, rows in run.items():
            known = found.setdefault(scenario, {})
            for name, value in rows.items():
                known[name] = min(value, known.get(name, value))
    return found


def main(arguments: Sequence[str]) -> int:
    """Measure both and compare; returns the exit status."""
    if len(arguments) < 2:
        print("Say a revision and scenarios: python -m bench.beside HEAD~1 fan-out clients=500", file=sys.stderr)
        return 2
    revision, *what = arguments
    ours: list[Ratios] = []
    theirs: list[Ratios] = []
    with _checkout(revision) as other:
        for _ in range(_TURNS):
            theirs.append(_measured(other, what))
            ours.append(_measured(_ROOT, what))
    now, before = lowest(ours), lowest(theirs)
    for scenario, rows in now.items():
        for name, value in rows.items():
            was = before.get(scenario, {}).get(name)
            print(f"{scenario}: {name}: {value:.2f}" + (f", {was:.2f} at {revision}" if was is not None else ""))
    found = worse(now, before, tolerance=TOLERANCE)
    print("\n".join(found) or f"No ratio is worse than at {revision} by more than {TOLERANCE:.0%}.")
    return 1 if found else 0


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


def _measured(sources: Path, what: Sequence[str]) -> dict[str, dict[str, float]]:
    subprocess.run([sys.executable, "-m", "bench", *what], cwd=sources, check=True)  # noqa: S603 - our own program
    return ratios_of(json.loads((sources / OUT.relative_to(_ROOT)).read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
