"""What a soak leaves: `soak.json` for programs and `soak.md` for people. Pure but for `write`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.soak.figures import Sample, percentile, slope_per_minute
from tests.soak.schedule import Fault

WARM_UP_S = 180.0
_SHORTEST_LIFE_S = 300.0
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Round:
    """One fault, and what the oracle saw. `converged_s` counts from the moment it was undone; None when the fleet did
    not converge in time.
    """

    fault: Fault
    at_s: float
    converged_s: float | None
    violations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Life:
    """What one process weighed over its life, in bytes."""

    name: str
    pid: int
    samples: tuple[Sample, ...]

    def as_json(self) -> dict[str, object]:
        """Kibibytes, and the slope of a life that was long enough to tell one."""
        weights = [weight for _, weight in self.samples]
        slope = slope_per_minute(self.samples, warm_up_s=WARM_UP_S, at_least_s=_SHORTEST_LIFE_S)
        return {
            "name": self.name,
            "pid": self.pid,
            "lived_s": round(self.samples[-1][0] - self.samples[0][0], 1),
            "first_kib": round(weights[0] / 1024),
            "last_kib": round(weights[-1] / 1024),
            "peak_kib": round(max(weights) / 1024),
            "slope_kib_per_minute": None if slope is None else round(slope / 1024, 1),
        }


@dataclass(slots=True)
class Run:
    """A soak, as far as it came."""

    seed: int
    minutes: float
    facts: Mapping[str, object]
    rounds: list[Round] = field(default_factory=list)
    lives: Sequence[Life] = ()
    writes: int = 0
    refused_writes: int = 0
    took_s: float = 0.0
    ended: str = "by itself"

    @property
    def violations(self) -> list[str]:
        """Each with the fault it was seen after."""
        return [f"{each.fault.kind.value}: {text}" for each in self.rounds for text in each.violations]

    def as_json(self) -> dict[str, object]:
        """Everything."""
        converged = [each.converged_s for each in self.rounds if each.converged_s is not None]
        return {
            "format": FORMAT,
            "seed": self.seed,
            "minutes": self.minutes,
            "took_s": round(self.took_s, 1),
            "ended": self.ended,
            "facts": dict(self.facts),
            "writes": self.writes,
            "writes_without_an_answer_of_success": self.refused_writes,
            "convergence_s": {
                "p50": round(percentile(converged, 50), 2) if converged else None,
                "p99": round(percentile(converged, 99), 2) if converged else None,
                "longest": round(max(converged), 2) if converged else None,
            },
            "violations": self.violations,
            "memory": [life.as_json() for life in self.lives],
            "faults": [_round(each) for each in self.rounds],
        }

    def as_markdown(self) -> str:
        """The same, to be read."""
        told = self.as_json()
        convergence = _mapping(told["convergence_s"])
        found = [f"* {text}" for text in self.violations] or ["None."]
        head = [
            "# Soak",
            "",
            f"Seed {self.seed}, {self.minutes:g} minutes wanted, {self.took_s / 60:.1f} taken, ended {self.ended}.",
            "",
            f"{len(self.rounds)} faults; {self.writes} writes, {self.refused_writes} without an answer of success.",
            "",
            "Convergence in seconds after a fault was undone and what it had ended was ready again:",
            f"p50 {convergence['p50']}, p99 {convergence['p99']}, longest {convergence['longest']}.",
            "",
            "## Violations",
            "",
            *found,
            "",
            "## Memory",
            "",
            "| process | pid | lived, s | first, KiB | last, KiB | peak, KiB | KiB per minute |",
            "|---|---|---|---|---|---|---|",
        ]
        lives = [f"| {' | '.join(_cell(value) for value in life.as_json().values())} |" for life in self.lives]
        faults = ["", "## Faults", "", "| at, s | fault | victim | held, s | converged, s |", "|---|---|---|---|---|"]
        faults += [f"| {' | '.join(_cell(value) for value in _round(each).values())} |" for each in self.rounds]
        facts = ["", "## Where", "", "```", json.dumps(dict(self.facts), indent=2), "```", ""]
        return "\n".join([*head, *lives, *faults, *facts])


def write(folder: Path, run: Run) -> None:
    """Both files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "soak.json").write_text(json.dumps(run.as_json(), indent=2) + "\n", encoding="utf-8")
    (folder / "soak.md").write_text(run.as_markdown(), encoding="utf-8")


def _round(each: Round) -> dict[str, object]:
    fault = asdict(each.fault) | {"kind": each.fault.kind.value}
    converged = None if each.converged_s is None else round(each.converged_s, 2)
    return {"at_s": round(each.at_s, 1), **fault, "converged_s": converged}


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _mapping(value: object) -> Mapping[str, object]:
    assert isinstance(value, Mapping)
    return value
