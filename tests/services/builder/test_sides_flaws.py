"""Mistakes that the code does not make: the machine of test_sides_machine.py finds each (rollouts.md "Evidence")."""

from collections.abc import Callable, Collection
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from controlplane.builder import candidate, services
from controlplane.builder.stages import sides
from controlplane.builder.stages.fallback import Resolution, resolve
from controlplane.builder.stages.sides import Heads, stable_heads
from controlplane.catalog.choices import StagedState
from controlplane.catalog.heads import Head
from controlplane.database.aliases import READER
from tests.services.builder.test_sides_machine import Sides
from xdscore.snapshot import Entry, EntryKey

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
Flaw = Callable[[pytest.MonkeyPatch], None]


def reverted_names_are_served(patch: pytest.MonkeyPatch) -> None:
    """The newest revision of a name that a rollout took back is what the fleet gets (against R7)."""

    def flawed(heads: Heads, staged: Collection[EntryKey]) -> Heads:
        found = dict(stable_heads(heads, staged))
        for key in staged:
            head = heads[key]
            if head.staged is not None and head.staged.state is StagedState.STOPPED:
                found[key] = replace(head, staged=None, quarantined=False)
        return found

    patch.setattr(services, "stable_heads", flawed)


def fallbacks_are_not_promoted(patch: pytest.MonkeyPatch) -> None:
    """A candidate falls back to itself, before it is promoted (against R6)."""

    def flawed(head: Head, _stable: Entry | None) -> Head:
        return replace(head, proven=head.content, proven_quarantined=False, staged=None)

    patch.setattr(sides, "_candidate", flawed)


def candidate_side_is_open(patch: pytest.MonkeyPatch) -> None:
    """What the candidate side refers to may be missing there (against the word "sides")."""

    def flawed(heads: Heads) -> Resolution:
        return replace(resolve(heads), entries={key: head.entry for key, head in heads.items()}, held=())

    patch.setattr(candidate, "resolve", flawed)


@pytest.mark.parametrize(
    ("flaw", "rule"),
    [
        (reverted_names_are_served, "what is stable|never promoted"),
        (fallbacks_are_not_promoted, "R6 of the cohort"),
        (candidate_side_is_open, "leads to nothing"),
    ],
)
def test_machine__a_builder_with_a_flaw__finds_it(flaw: Flaw, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    flaw(monkeypatch)
    search = settings(
        max_examples=60,
        stateful_step_count=25,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        database=None,
    )

    with pytest.raises(AssertionError, match=rule):
        run_state_machine_as_test(Sides, settings=search)
