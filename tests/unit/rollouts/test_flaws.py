"""Mistakes that the code does not make: the machine of test_machine.py finds each (rollouts.md "Evidence")."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from controlplane.rollouts.facts import Facts, Rules, Verdict
from controlplane.rollouts.judge import judge
from controlplane.rollouts.values import Outcome
from tests.unit.rollouts import test_machine
from tests.unit.rollouts.test_machine import Rollouts

Judge = Callable[[Facts, Rules], Verdict]


class _DrawnAnew(Rollouts):
    """Each time that clients are chosen, only these are in the cohort."""

    def pick(self, digests: set[str]) -> None:
        self.rollout.table = replace(self.rollout.table, picks=frozenset())
        super().pick(digests)


def inconclusive_promotes(facts: Facts, rules: Rules) -> Verdict:
    """Whoever cannot say that something fails lets it pass (against R9)."""
    verdict = judge(facts, rules)
    return replace(verdict, outcome=Outcome.PASS) if verdict.outcome is Outcome.INCONCLUSIVE else verdict


def lost_is_unexposed(facts: Facts, rules: Rules) -> Verdict:
    """Whose stream ended before it answered counts as one that asked for nothing that differs (against R9)."""
    cohort = tuple(
        replace(asked, answers={}, losses=0)
        if asked.losses and not all(answer.final for answer in asked.answers.values())
        else asked
        for asked in facts.cohort
    )
    return judge(replace(facts, cohort=cohort), rules)


def found(machine: type[Rollouts]) -> str:
    """What the machine says is broken; empty where it finds nothing."""
    search = settings(
        max_examples=400,
        stateful_step_count=40,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,  # finding them is no matter of luck
    )
    try:
        run_state_machine_as_test(machine, settings=search)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("flaw", "rule"), [(inconclusive_promotes, "nobody"), (lost_is_unexposed, "nobody")])
def test_machine__a_judge_with_a_flaw__finds_it(flaw: Judge, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(test_machine, "judge", flaw)

    assert rule in found(Rollouts)


def test_machine__a_cohort_that_shrinks_at_a_step__finds_it() -> None:
    # Whoever had it is not inside any more, which the machine notices by what they saw, or by who was inside.
    assert "<=" in found(_DrawnAnew)
