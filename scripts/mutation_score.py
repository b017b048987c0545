"""Say how many mutants the last `mutmut run` killed: `mutation_score.py PERCENT` fails below that share.

A mutant counts as killed when a test failed or the run took too long; one that no test reaches counts as alive.
"""

import json
import subprocess
import sys
from pathlib import Path

STATS = Path("mutants/mutmut-cicd-stats.json")


def main(least_percent: float) -> int:
    """Print the mutation score; the exit status is 1 when fewer than `least_percent` percent of the mutants were
    killed.
    """
    mutmut = Path(sys.executable).with_name("mutmut")
    subprocess.run([mutmut, "export-cicd-stats"], check=True, stdout=subprocess.DEVNULL)  # noqa: S603  our own tool
    stats: dict[str, int] = json.loads(STATS.read_text(encoding="utf-8"))
    killed = stats["killed"] + stats["timeout"] + stats["suspicious"] + stats["segfault"]
    total = killed + stats["survived"] + stats["no_tests"]
    percent = 100 * killed / total if total else 0.0
    sys.stdout.write(f"{killed} of {total} mutants were killed: {percent:.1f} % (at least {least_percent:g} %).\n")
    return 0 if percent >= least_percent else 1


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
