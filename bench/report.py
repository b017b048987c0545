"""What a run leaves: `bench/out/latest.json` for programs, a table for people."""

import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from os import cpu_count
from pathlib import Path

from bench.plot import chart
from bench.registry import Measurement, Parameters

FORMAT = 1
DIRTY = "-dirty"
"""How the id of a commit ends where files differ from it."""
_PACKAGES = ("django", "grpcio", "protobuf", "psycopg")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one run of a scenario. `error`: why measurements are missing; empty where none is."""

    name: str
    parameters: Parameters
    measurements: tuple[Measurement, ...]
    seconds: float
    error: str = ""


def result_to_json(result: Result) -> dict[str, object]:
    """A result as the JSON object that is written to the report's file."""
    return {
        "name": result.name,
        "parameters": dict(result.parameters),
        "seconds": round(result.seconds, 2),
        "error": result.error,
        "measurements": [_measurement_to_json(each) for each in result.measurements],
    }


def measurement_from_json(data: Mapping[str, object]) -> Measurement:
    """The measurement in a JSON object that `result_to_json` made."""
    samples, at_most = data["samples"], data["at_most"]
    if not isinstance(samples, list) or not isinstance(at_most, float | int | None):
        raise TypeError(f"not a measurement: {data}")
    line, x = str(data["line"]), float(str(data["x"]))
    return Measurement(str(data["name"]), str(data["unit"]), tuple(samples), at_most, line, x)


def document(results: Sequence[Result]) -> dict[str, object]:
    """The content of the report's file: what was measured, with which sources, on which machine, and when."""
    return {
        "format": FORMAT,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "scenarios": [result_to_json(result) for result in results],
    }


def machine() -> dict[str, object]:
    """Facts about this machine, and the versions of the software that is measured."""
    return {
        "cores": cpu_count(),
        "architecture": platform.machine(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def commit() -> str:
    """The id of the sources' commit, marked where files differ from it; empty outside a repository or without git."""
    command = ["git", "describe", "--always", f"--dirty={DIRTY}", "--abbrev=12"]
    try:
        asked = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
        )
    except OSError:
        return ""
    return asked.stdout.strip()


def write(path: Path, results: Sequence[Result]) -> None:
    """Write the report's file, either whole or not at all, and beside it a picture for each result that has lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for result in results:
        if lines := lines_of(result):
            picture = chart(f"{result.name}: a change to the last client", "clients", "seconds", lines)
            (path.parent / f"{result.name}.svg").write_text(picture, encoding="utf-8")
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(document(results), indent=2) + "\n", encoding="utf-8")
    fresh.replace(path)


def lines_of(result: Result) -> dict[str, list[tuple[float, float]]]:
    """The points (x, median) on each line of a result's picture, by the line's name; empty where there is no
    picture.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for each in result.measurements:
        if each.line:
            lines.setdefault(each.line, []).append((each.x, each.median))
    return lines


def table(results: Sequence[Result]) -> str:
    """The measurements as a text table, one in each line, with median, spread and target."""
    rows = [("scenario", "measurement", "median", "min … max", "target", "")]
    for result in results:
        rows.extend(_row(result.name, each) for each in result.measurements)
        if result.error:
            rows.append((result.name, "failed", "", "", "", result.error.strip().splitlines()[-1]))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join(
        "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5])).rstrip()
        for row in rows
    )


def _row(name: str, each: Measurement) -> tuple[str, str, str, str, str, str]:
    spread = f"{_number(min(each.samples))} … {_number(max(each.samples))}" if len(each.samples) > 1 else ""
    target = f"≤ {_number(each.at_most)}" if each.at_most is not None else ""
    word = {None: "", True: "met", False: "MISSED"}[each.met]
    return name, each.name, f"{_number(each.median)} {each.unit}", spread, target, word


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _measurement_to_json(each: Measurement) -> dict[str, object]:
    return {
        "name": each.name,
        "unit": each.unit,
        "median": each.median,
        "samples": list(each.samples),
        "at_most": each.at_most,
        "met": each.met,
        "line": each.line,
        "x": each.x,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
