"""What people are told of rollouts: what is no news, and that an author reads where it stopped and who refused it."""

import pytest

from controlplane.notify.catalogue import KINDS, Severity, wording_of
from controlplane.notify.rollout_words import is_news

SAID = {
    "rollout": "1f2e3d4c-0000",
    "label": "rollout 1f2e3d4c",
    "mode": "steps",
    "step": "1",
    "steps": "3",
    "reason": "2 of 2 clients of envoy 1.40 refused cluster 'pay': bad path.",
    "waits_for": "a person's word",
    "reverted": "[{'type': 'cluster'}]",
    "names": "cluster 'pay'",
    "blamed": "dana in change 01234567",
    "by": "dana, erin",
    "actor": "",
}
NOTHING_BACK = {**SAID, "reverted": "[]", "names": ""}


@pytest.mark.parametrize(
    ("kind", "said", "news"),
    [
        ("rollout.opened", {**NOTHING_BACK, "mode": "pilot"}, False),
        ("rollout.opened", NOTHING_BACK, True),
        ("rollout.done", {**NOTHING_BACK, "mode": "pilot"}, False),
        ("rollout.done", {**SAID, "mode": "pilot"}, True),
        ("rollout.took_back", {**SAID, "mode": "pilot"}, True),
        ("rollout.aborted", SAID, False),  # the same moment told what was taken back
        ("rollout.aborted", NOTHING_BACK, True),
        ("build.failed", {}, True),
    ],
)
def test_news__of_a_rollout__is_what_did_not_go_its_way_or_goes_in_steps(
    kind: str, said: dict[str, str], news: bool
) -> None:
    assert is_news(kind, said) is news


def test_words__something_was_taken_back__say_where_it_stopped_who_refused_it_and_that_the_fleet_never_had_it() -> None:
    words = wording_of(KINDS["rollout.took_back"], environment="prod", payload=SAID, public_url="https://cp")

    assert words.title == "cluster 'pay' stopped on the way in 'prod'"
    assert words.text == (
        "Rollout 1f2e3d4c took it back at step 1 of 3. 2 of 2 clients of envoy 1.40 refused cluster 'pay': bad path. "
        "The fleet never had it: all others go on with what was before. Written by dana in change 01234567. "
        "Next: read who refused it, mend it, and write it again."
    )
    assert words.link == "https://cp/rollouts/1f2e3d4c-0000"
    assert words.severity is Severity.NORMAL


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.startswith("rollout.")])
def test_words__of_every_kind_about_rollouts__name_the_environment_and_a_next_step(kind: str) -> None:
    words = wording_of(KINDS[kind], environment="prod", payload=SAID, public_url="")

    assert "'prod'" in words.title
    assert "Next: " in words.text
    assert ". ." not in words.text


def test_words__somebody_paused_it__say_who_and_why() -> None:
    said = {**NOTHING_BACK, "actor": "dana", "reason": "until the sale is over"}

    words = wording_of(KINDS["rollout.paused"], environment="prod", payload=said, public_url="")

    assert "dana: until the sale is over." in words.text
