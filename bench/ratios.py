"""Ratios of runs, what is worse in one than in another, and the file of those that are committed.

A ratio compares two measurements of one run (product and floor, everything on and everything off), so that a slower
machine changes both. Where two revisions are measured in the same minutes the floor is not needed for that: the product
is compared with itself, by the lower quartile of what all turns measured. A machine that others share is half as fast
again for some seconds and then is not, and a median is of either kind by chance.
"""

import json
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.registry import OVER_THE_FLOOR, percentile

COMMITTED: Final = Path(__file__).parent / "ratios.json"
_UNIT: Final = "times"

Ratios = Mapping[str, Mapping[str, float]]
"""By scenario and measurement."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a run measured. `product`: for each ratio to the floor, by scenario and name, the product's samples."""

    ratios: Ratios
    product: Mapping[str, Mapping[str, Sequence[float]]] = field(default_factory=dict)


Turn = tuple[Run, Run]
"""A run of another revision and one of these sources, one after the other."""


@dataclass(frozen=True, slots=True)
class Worse:
    """A ratio, or what one is a ratio of, that is worse `now` than it `was`; None: it was not measured."""

    scenario: str
    name: str
    was: float | None
    now: float | None

    def __str__(self) -> str:
        """The sentence that says so."""
        if self.now is None or self.was is None:
            return f"{self.scenario}: '{self.name}' was not measured."
        return f"{self.scenario}: '{self.name}' is {self.now:.3g}; it was {self.was:.3g}."


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


def run_of(document: Mapping[str, object]) -> Run:
    """What a run measured, in the file that it wrote."""
    ratios = ratios_of(document)
    product: dict[str, dict[str, Sequence[float]]] = {}
    for each in _scenarios(document):
        for row in each["measurements"]:
            name = f"{row['name']}{OVER_THE_FLOOR}"
            if name in ratios.get(each["name"], {}):
                product.setdefault(each["name"], {})[name] = row["samples"]
    return Run(ratios, product)


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
    """The ratios that are worse in these sources than at the other revision by more than the share `tolerance`: those
    to the floor by the lower quartile of the product's own samples of all turns, others in the middle one of all turns.
    One that is missing in some turn is among them.

    `only`: the ratios to compare, each as (scenario, name); None: all that the other revision measures.
    """
    found = []
    for scenario, name in _measured(before for before, _ in turns) if only is None else only:
        both = _compared(turns, scenario, name)
        if both is None:
            found.append(Worse(scenario, name, None, None))
        elif both.times > 1 + tolerance:
            found.append(Worse(scenario, both.name, both.was, both.now))
    return found


def lines(turns: Sequence[Turn], revision: str) -> list[str]:
    """A line for each ratio of these turns: what was compared, here and at the revision."""
    said = []
    for scenario, name in _measured(after for _, after in turns):
        both = _compared(turns, scenario, name)
        if both is not None:
            text = f"{both.now:.3g}, {both.was:.3g} at {revision}; {both.times:.2f} times"
            said.append(f"{scenario}: {both.name}: {text}")
    return said


@dataclass(frozen=True, slots=True)
class _Compared:
    """What one ratio comes to in turns of two revisions; `name`: of what was compared."""

    name: str
    was: float
    now: float
    times: float


def _compared(turns: Sequence[Turn], scenario: str, name: str) -> _Compared | None:
    """The ratio of this name in all turns; None where it is missing in one."""
    runs = [run for turn in turns for run in turn]
    if all(name in run.product.get(scenario, {}) for run in runs):
        was, now = (_quartile(scenario, name, side) for side in zip(*turns, strict=True))
        return _Compared(name.removesuffix(OVER_THE_FLOOR), was, now, now / was)
    if any(name not in run.ratios.get(scenario, {}) for run in runs):
        return None
    before = [run.ratios[scenario][name] for run, _ in turns]
    after = [run.ratios[scenario][name] for _, run in turns]
    times = statistics.median(now / was for was, now in zip(before, after, strict=True))
    return _Compared(name, statistics.median(before), statistics.median(after), times)


def _quartile(scenario: str, name: str, runs: Iterable[Run]) -> float:
    return percentile([sample for run in runs for sample in run.product[scenario][name]], 25)


def _measured(runs: Iterable[Run]) -> list[tuple[str, str]]:
    """The scenario and name of each ratio that was measured in any of these runs."""
    return list(
        dict.fromkeys((scenario, name) for run in runs for scenario, rows in run.ratios.items() for name in rows)
    )
