"""How much the machines of this folder play: `HYPOTHESIS_EXAMPLES` = quick (mutation), suite or nightly."""

import os

from hypothesis import HealthCheck, Phase, settings

_EXAMPLES = {"quick": 40, "suite": 300, "nightly": 5000, "some": 1500}
_PROFILE = os.environ.get("HYPOTHESIS_EXAMPLES", "suite")

STEPS = 40
EXAMPLES = settings(
    max_examples=_EXAMPLES[_PROFILE],
    stateful_step_count=STEPS,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
if _PROFILE == "quick":
    # A mutant is dead or alive, and no more need be said of it: nothing is tried again to make a failure small.
    EXAMPLES = settings(EXAMPLES, phases=[Phase.generate], derandomize=True, database=None)
