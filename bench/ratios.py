"""Ratios of runs, what is worse in one than in another, and the file of those that are committed.

A ratio compares two measurements of one run (product and floor, everything on and everything off), so that a slower
machine changes both.
"""

import json
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

COMMITTED: Final = Path(__file__).parent / "ratios.json"
_UNIT: Final = "times"

Ratios = Mapping[str, Mapping[str, float]]
"""By scenario and measurement."""
Turn = tuple[Ratios, Ratios]
"""The ratios of another revision, and those of these sources, measured one after the other."""


@dataclass(frozen=True, slots=True)
class Worse:
    """A ratio that is worse `now` than it `was`; None: it was not measured."""

    scenario: str
    name: str
    was: float | None
    now: float | None

    def __str__(self) -> str:
        """The sentence that says so."""
        if self.now is None or self.was is None:
            return f"{self.scenario}: '{self.name}' was not measured."
        return f"{self.scenario}: '{self.name}' is {self.now:.2f}; it was {self.was:.2f}."


@dataclass(frozen=True, slots=True)
class Committed:
    """The committed ratios of a scenario. `revision`: the sources that had them."""

    revision: str
    ratios: Mapping[str, float]


def committed_read(path: Path) -> dict[str, Committed]:
    """The committed ratios, by scenario; none where the file is missing."""
    if not path.exists():
        return {}
    return {name: Committed(**each) for name, each in json.loads(path.read_text(encoding="utf-8")).items()}


def committed_write(path: Path, measured: Ratios, revision: str) -> None:
    """Put these ratios, which the sources of this revision had, in the place of those of the same scenarios."""
    known = committed_read(path)
    known |= {
        name: Committed(revision, {row: round(value, 3) for row, value in rows.items()})
        for name, rows in measured.items()
    }
    written = {name: {"revision": each.revision, "ratios": each.ratios} for name, each in known.items()}
    path.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def ratios_of(document: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """The ratios in the file that a run wrote, by scenario and name. For a scenario that failed: those it measured
    before.
    """
    found = {
        each["name"]: {row["name"]: float(row["median"]) for row in each["measurements"] if row["unit"] == _UNIT}
        for each in _scenarios(document)
    }
    return {name: rows for name, rows in found.items() if rows}


def parameters_of(document: Mapping[str, object]) -> dict[str, Mapping[str, int]]:
    """The parameters of a run's scenarios, by scenario, in the file that the run wrote."""
    return {each["name"]: each["parameters"] for each in _scenarios(document)}


def _scenarios(document: Mapping[str, object]) -> list[Any]:
    scenarios = document["scenarios"]
    if not isinstance(scenarios, list):
        raise TypeError("not the file of a run")
    return scenarios


def worse(measured: Ratios, before: Ratios, *, tolerance: float) -> list[Worse]:
    """The ratios of `before` that are missing from the run, or that the run's exceed by more than the share
    `tolerance`.
    """
    found = []
    for scenario, rows in before.items():
        for name, was in rows.items():
            now = measured.get(scenario, {}).get(name)
            if now is None or now > was * (1 + tolerance):
                found.append(Worse(scenario, name, was, now))
    return found


def slower(turns: Sequence[Turn], *, tolerance: float, only: Collection[tuple[str, str]] | None = None) -> list[Worse]:
    """The ratios that are worse in these sources than at the other revision by more than the share `tolerance`, in the
    middle one of all turns; each is told as it is in the middle. One that is missing in some turn is among them.

    `only`: the ratios to compare, each as (scenario, name); None: all that the other revision measures.
    """
    found = []
    for scenario, name in _measured(before for before, _ in turns) if only is None else only:
        was = _each(scenario, name, (before for before, _ in turns))
        now = _each(scenario, name, (after for _, after in turns))
        if min(len(was), len(now)) < len(turns):
            found.append(Worse(scenario, name, None, None))
        elif times(was, now) > 1 + tolerance:
            found.append(Worse(scenario, name, statistics.median(was), statistics.median(now)))
    return found


def times(was: Sequence[float], now: Sequence[float]) -> float:
    """How many times as large the second is as the first, in the middle one of all turns."""
    return statistics.median(after / before for before, after in zip(was, now, strict=True))


def lines(turns: Sequence[Turn], revision: str) -> list[str]:
    """A line for each ratio of these turns: as it is in the middle, and at the revision."""
    said = []
    for scenario, name in _measured(after for _, after in turns):
        was = _each(scenario, name, (before for before, _ in turns))
        now = _each(scenario, name, (after for _, after in turns))
        line = f"{scenario}: {name}: {statistics.median(now):.2f}"
        if len(was) == len(now):
            line += f", {statistics.median(was):.2f} at {revision}; turn by turn {times(was, now):.2f} times"
        said.append(line)
    return said


def _measured(runs: Iterable[Ratios]) -> list[tuple[str, str]]:
    """The scenario and name of each ratio that was measured in any of these runs."""
    return list(dict.fromkeys((scenario, name) for run in runs for scenario, rows in run.items() for name in rows))


def _each(scenario: str, name: str, runs: Iterable[Ratios]) -> list[float]:
    return [run[scenario][name] for run in runs if name in run.get(scenario, {})]
