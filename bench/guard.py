"""`python -m bench.guard`: holds the ratios of the last run against those that are committed.

bench/ratios.json has them, with the revision whose sources had them; `--write` puts those of the last run there
instead, for the scenarios that ran. A ratio is not the same on every machine, nor in every hour of a shared one: one
that is worse than the committed one by more than the tolerance is measured once more, in turn with that revision. The
exit status is 1 when it is worse than there, too, or when one was not measured.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Final

from bench.__main__ import OUT
from bench.beside import beside
from bench.ratios import COMMITTED, Ratios, Worse, committed_read, committed_write, parameters_of, ratios_of, worse
from bench.registry import load_scenarios
from bench.report import DIRTY

# Ratios of runs of the same sources differ by less on a machine that does nothing else.
TOLERANCE: Final = 0.25


def main(arguments: Sequence[str]) -> int:
    """Compare the ratios of the last run with the committed ones; returns the exit status."""
    document = json.loads(OUT.read_text(encoding="utf-8"))
    measured, committed = ratios_of(document), committed_read(COMMITTED)
    if arguments == ["--write"]:
        return _write(measured, document["commit"])
    if not committed:
        print(f"{COMMITTED.name} is empty or missing: `python -m bench.guard --write` makes it.", file=sys.stderr)
        return 1
    missed = worse(measured, {name: each.ratios for name, each in committed.items()}, tolerance=TOLERANCE)
    if not missed:
        print(f"No ratio is worse by more than {TOLERANCE:.0%}.")
        return 0
    print(f"Worse than in {COMMITTED.name} by more than {TOLERANCE:.0%}:", *missed, sep="\n", flush=True)
    if any(each.now is None for each in missed):
        return 1
    parameters = parameters_of(document)
    confirmed = [
        each
        for name in dict.fromkeys(each.scenario for each in missed)
        for each in _confirmed(name, committed[name].revision, parameters[name], missed)
    ]
    if not confirmed:
        print("It is this machine or this hour: the sources that had the committed ratios do no better here.")
    return 1 if confirmed else 0


def _write(measured: Ratios, revision: str) -> int:
    if not revision or revision.endswith(DIRTY):
        print("The last run was of sources that no commit has. Commit them, and run again.", file=sys.stderr)
        return 1
    committed_write(COMMITTED, measured, revision)
    return 0


def _confirmed(scenario: str, revision: str, parameters: Mapping[str, int], missed: Sequence[Worse]) -> list[Worse]:
    """Which of the missed ratios of a scenario are worse than at the revision of the committed ones, too; all of them
    where that cannot be measured.
    """
    only = [(each.scenario, each.name) for each in missed if each.scenario == scenario]
    # A parameter that is newer than the revision is none there, which is what its default means here.
    usual = load_scenarios()[scenario].parameters
    what = [scenario, *(f"{name}={number}" for name, number in parameters.items() if number != usual.get(name))]
    print(f"Measuring {scenario} here and at {revision} in turn:", flush=True)
    try:
        return beside(revision, what, only=only)
    except subprocess.CalledProcessError as error:
        print(f"The sources of {revision} could not be measured: {error}", file=sys.stderr)
        return [each for each in missed if each.scenario == scenario]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
