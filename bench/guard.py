"""`python -m bench.guard`: holds the ratios of the last run against those that are committed.

A ratio compares two measurements of one run (product and floor, everything on and everything off), so that a slower
machine changes both. bench/ratios.json has them; `--write` puts those of the last run there instead, for the scenarios
that ran. The exit status is 1 when a ratio is worse than the committed one by more than the tolerance, or is missing.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from bench.__main__ import OUT

COMMITTED: Final = Path(__file__).parent / "ratios.json"
_UNIT: Final = "times"
# Ratios of runs of the same sources differ by less on a machine that does nothing else.
TOLERANCE: Final = 0.25

Ratios = Mapping[str, Mapping[str, float]]
"""By scenario and measurement."""


def ratios_of(document: Mapping[str, object]) -> dict[str, dict[str, float]]:
    """The ratios that a run measured, by scenario and name, from the file it left. A scenario that failed has those
    from before.
    """
    scenarios = document["scenarios"]
    if not isinstance(scenarios, list):
        raise TypeError("not the file of a run")
    found = {
        each["name"]: {row["name"]: float(row["median"]) for row in each["measurements"] if row["unit"] == _UNIT}
        for each in scenarios
    }
    return {name: rows for name, rows in found.items() if rows}


def worse(measured: Ratios, committed: Ratios, *, tolerance: float = TOLERANCE) -> list[str]:
    """One sentence for each committed ratio that the run exceeds by more than `tolerance`, or does not have."""
    found = []
    for scenario, rows in committed.items():
        for name, before in rows.items():
            now = measured.get(scenario, {}).get(name)
            if now is None:
                found.append(f"{scenario}: '{name}' was not measured.")
            elif now > before * (1 + tolerance):
                found.append(
                    f"{scenario}: '{name}' is {now:.2f}; it was {before:.2f}, and may be {tolerance:.0%} more."
                )
    return found


def main(arguments: Sequence[str]) -> int:
    """Compare the ratios of the last run with the committed ones; returns the exit status."""
    measured = ratios_of(json.loads(OUT.read_text(encoding="utf-8")))
    committed = json.loads(COMMITTED.read_text(encoding="utf-8")) if COMMITTED.exists() else {}
    if arguments == ["--write"]:
        rounded = {name: {row: round(value, 3) for row, value in rows.items()} for name, rows in measured.items()}
        COMMITTED.write_text(json.dumps({**committed, **rounded}, indent=2) + "\n", encoding="utf-8")
        return 0
    if not committed:
        print(f"{COMMITTED.name} is empty or missing: `python -m bench.guard --write` makes it.", file=sys.stderr)
        return 1
    found = worse(measured, committed)
    print("\n".join(found) or f"No ratio is worse by more than {TOLERANCE:.0%}.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
