"""The table of scenarios, and what one of them yields.

A scenario is a function that takes its parameters and yields measurements. It registers itself:

    @scenario("build", "One change in a large environment", parameters={"resources": 10_000})
    def build(parameters: Parameters) -> Iterator[Measurement]: ...

Each run of a scenario has a process of its own, so that memory, imports and settings of one never disturb another.
"""

import importlib
import pkgutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import bench.scenarios

Parameters = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured quantity and its samples; the median is what counts.

    `at_most` is its target (performance.md, "Targets"), None where it is only of interest. Missing a target is a result
    and not a failure: a benchmark is never a timed test. `line` and `x` say where it lies in the scenario's picture: on
    the line of that name.
    """

    name: str
    unit: str
    samples: tuple[float, ...]
    at_most: float | None = None
    line: str = ""
    x: float = 0.0

    @property
    def median(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def met(self) -> bool | None:
        """Whether the median keeps the target; None without a target."""
        return None if self.at_most is None else self.median <= self.at_most


def ratio(name: str, product: Measurement, floor: Measurement, *, at_most: float | None = None) -> Measurement:
    """The ratio of the product's median to the floor's, of two measurements of one run."""
    return Measurement(name, "times", (product.median / floor.median,), at_most)


def ratio_by_round(
    name: str, costly: Measurement, cheap: Measurement, *, rounds: int, at_most: float | None = None
) -> Measurement:
    """The ratio of the costly measurement to the cheap one, in the round with the median ratio: the same hour and the
    same clients meet both sides of a round, so that what differs between rounds is in none of the ratios.

    Both have the same number of samples of each round, in the order of the rounds.
    """
    pairs = zip(_means(costly, rounds), _means(cheap, rounds), strict=True)
    return Measurement(name, "times", tuple(one / other for one, other in pairs), at_most)


def _means(measurement: Measurement, rounds: int) -> list[float]:
    each = len(measurement.samples) // rounds
    return [statistics.fmean(measurement.samples[number * each : (number + 1) * each]) for number in range(rounds)]


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that is at least as large as `percent` percent of all (nearest rank)."""
    return sorted(samples)[-(-len(samples) * percent // 100) - 1]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A registered scenario. `parameters` holds the defaults, and so says which parameters there are. One with
    `by_name` takes long or much, and runs only when it is named.
    """

    name: str
    summary: str
    run: Callable[[Parameters], Iterable[Measurement]]
    parameters: Parameters = field(default_factory=dict)
    by_name: bool = False


class UnknownScenarioError(ValueError):
    """No scenario, or no parameter of it, has this name."""


SCENARIOS: dict[str, Scenario] = {}

Run = Callable[[Parameters], Iterable[Measurement]]


def scenario(
    name: str, summary: str, *, parameters: Parameters | None = None, by_name: bool = False
) -> Callable[[Run], Run]:
    """A decorator that registers a function as the scenario `name`."""

    def register(run: Run) -> Run:
        if name in SCENARIOS:
            raise UnknownScenarioError(f"two scenarios are named '{name}'")
        SCENARIOS[name] = Scenario(name, summary, run, dict(parameters or {}), by_name)
        return run

    return register


def load_scenarios() -> Mapping[str, Scenario]:
    """Every scenario by name, in the order of their names."""
    for module in pkgutil.iter_modules(bench.scenarios.__path__):
        importlib.import_module(f"{bench.scenarios.__name__}.{module.name}")
    return dict(sorted(SCENARIOS.items()))


def parameters_of(chosen: Scenario, given: Parameters, *, strict: bool) -> Parameters:
    """The scenario's parameters with what is given in place of defaults.

    Raises UnknownScenarioError for a parameter it does not have, unless several scenarios share one command line
    (`strict` is false): then each takes what is its own.
    """
    foreign = given.keys() - chosen.parameters.keys()
    if foreign and strict:
        known = ", ".join(chosen.parameters) or "none"
        raise UnknownScenarioError(f"'{chosen.name}' has no parameter '{min(foreign)}'. Its parameters are: {known}.")
    return {**chosen.parameters, **{key: value for key, value in given.items() if key not in foreign}}
