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
OVER_THE_FLOOR = ", over the floor"
"""How a ratio to the floor server is named: as what it is a ratio of, and this."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured quantity and its samples; their median is the result.

    `at_most`: its target (performance.md, "Targets"), None where there is none. Missing a target is a result, not a
        failure.
    `line`, `x`: in the scenario's picture, the name of the line on which the point lies, and where on the axis; empty:
        it is not in the picture.
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
        """Whether the median is within the target; None without a target."""
        return None if self.at_most is None else self.median <= self.at_most


def ratio(name: str, costly: Measurement, cheap: Measurement, *, at_most: float | None = None) -> Measurement:
    """The ratio of the medians of two measurements of one run."""
    return Measurement(name, "times", (costly.median / cheap.median,), at_most)


def over_the_floor(product: Measurement, floor: Measurement, *, at_most: float | None = None) -> Measurement:
    """The ratio of the product's median to the median of the floor server, which does the least work; both of one
    run.
    """
    return ratio(product.name + OVER_THE_FLOOR, product, floor, at_most=at_most)


def ratio_by_round(
    name: str, costly: Measurement, cheap: Measurement, *, rounds: int, at_most: float | None = None
) -> Measurement:
    """The ratio of `costly` to `cheap`, in the round whose ratio is the median of all rounds. Both sides of a round are
    measured at the same time with the same clients, so that what differs between rounds does not matter.

    Each measurement has equally many samples of every round, in the order of the rounds.
    """
    pairs = zip(_means(costly, rounds), _means(cheap, rounds), strict=True)
    return Measurement(name, "times", tuple(one / other for one, other in pairs), at_most)


def _means(measurement: Measurement, rounds: int) -> list[float]:
    each = len(measurement.samples) // rounds
    return [statistics.fmean(measurement.samples[number * each : (number + 1) * each]) for number in range(rounds)]


def percentile(samples: Sequence[float], percent: int) -> float:
    """The smallest sample that at least `percent` percent of the samples do not exceed (nearest rank)."""
    return sorted(samples)[-(-len(samples) * percent // 100) - 1]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A registered scenario. `parameters`: all its parameters with their defaults; `by_name`: whether it runs only when
    it is named, because it takes long or needs much.
    """

    name: str
    summary: str
    run: Callable[[Parameters], Iterable[Measurement]]
    parameters: Parameters = field(default_factory=dict)
    by_name: bool = False


class UnknownScenarioError(ValueError):
    """No scenario has this name, or the scenario has no parameter with this name."""


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
    """The scenario's parameters: the `given` ones, and defaults for the others.

    `strict`: raise UnknownScenarioError for a given parameter that the scenario does not have; else leave it out,
        because several scenarios share one command line.
    """
    foreign = given.keys() - chosen.parameters.keys()
    if foreign and strict:
        known = ", ".join(chosen.parameters) or "none"
        raise UnknownScenarioError(f"'{chosen.name}' has no parameter '{min(foreign)}'. Its parameters are: {known}.")
    return {**chosen.parameters, **{key: value for key, value in given.items() if key not in foreign}}
