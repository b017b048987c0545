"""`python -m bench [SCENARIO…] [parameter=number…]`: measure, write bench/out/latest.json, print a table.

Without a scenario all of them run but those that take very long. `python -m bench --list` shows them with their
parameters. The exit status is 1 when a scenario failed, not when a target was missed.
"""

import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.registry import Measurement, Parameters, Scenario, UnknownScenarioError, load_scenarios, parameters_of
from bench.report import Result, measurement_from_json, result_to_json, table, write

OUT = Path(__file__).parent / "out" / "latest.json"
# Says to a process of ours that it is the one which measures, and where it leaves its result.
_INSIDE = "--inside"


def main(arguments: Sequence[str]) -> int:
    """Run the scenarios that the arguments name and write the results; returns the exit status."""
    scenarios = load_scenarios()
    if arguments[:1] == [_INSIDE]:
        return _measure(scenarios[arguments[2]], json.loads(arguments[3]), Path(arguments[1]))
    if "--list" in arguments:
        print(_listing(scenarios))
        return 0
    try:
        chosen, given = _read(arguments, scenarios)
        wanted = [(each, parameters_of(each, given, strict=len(chosen) == 1)) for each in chosen]
    except UnknownScenarioError as error:
        print(error, file=sys.stderr)
        return 2
    results = []
    for each, parameters in wanted:
        print(f"… {each.name}: {each.summary}", file=sys.stderr, flush=True)
        results.append(run_apart(each, parameters))
    write(OUT, results)
    print(table(results))
    return 1 if any(result.error for result in results) else 0


def _read(arguments: Sequence[str], scenarios: Mapping[str, Scenario]) -> tuple[Sequence[Scenario], Parameters]:
    """The scenarios and parameters that a command line names. Raises UnknownScenarioError."""
    names = [argument for argument in arguments if "=" not in argument]
    given: dict[str, int] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if separator:
            try:
                given[key] = int(value)
            except ValueError:
                raise UnknownScenarioError(f"'{key}' must be a whole number; it is '{value}'.") from None
    unknown = [name for name in names if name not in scenarios]
    if unknown:
        raise UnknownScenarioError(f"There is no scenario '{unknown[0]}'. There are: {', '.join(scenarios)}.")
    unnamed = [each for each in scenarios.values() if not each.by_name]
    return [scenarios[name] for name in names] or unnamed, given


def run_apart(chosen: Scenario, parameters: Parameters) -> Result:
    """Run a scenario in a process of its own and return its result."""
    with tempfile.TemporaryDirectory(prefix="parley-bench-") as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "bench", _INSIDE, str(out), chosen.name, json.dumps(dict(parameters))]
        began = time.monotonic()
        ended = subprocess.run(command, cwd=Path(__file__).parent.parent, check=False)  # noqa: S603 - our own module
        seconds = time.monotonic() - began
        if not out.exists():
            return Result(chosen.name, parameters, (), seconds, f"its process ended with status {ended.returncode}")
        data = json.loads(out.read_text(encoding="utf-8"))
    measurements = tuple(measurement_from_json(each) for each in data["measurements"])
    return Result(chosen.name, parameters, measurements, seconds, data["error"])


def _measure(chosen: Scenario, parameters: Parameters, out: Path) -> int:
    """Run a scenario in this process and leave the result in `out`; what was measured before a failure is kept. Returns
    the exit status.
    """
    measurements: list[Measurement] = []
    error = ""
    began = time.monotonic()
    try:
        _collect(chosen.run(parameters), measurements)
    except Exception:  # noqa: BLE001 - whatever a scenario raises is its result; the other scenarios go on
        error = traceback.format_exc()
        print(error, file=sys.stderr)
    result = Result(chosen.name, parameters, tuple(measurements), time.monotonic() - began, error)
    out.write_text(json.dumps(result_to_json(result)), encoding="utf-8")
    return 1 if error else 0


def _collect(source: Iterable[Measurement], into: list[Measurement]) -> None:
    for each in source:
        into.append(each)  # noqa: PERF402 - one by one: what came before an exception is kept


def _listing(scenarios: Mapping[str, Scenario]) -> str:
    width = max((len(name) for name in scenarios), default=0)
    lines = []
    for name, each in scenarios.items():
        parameters = " ".join(f"{key}={value}" for key, value in each.parameters.items())
        when = "  (only by its name)" if each.by_name else ""
        lines.append(f"{name.ljust(width)}  {each.summary}{when}  {parameters}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
