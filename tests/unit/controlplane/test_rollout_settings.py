"""The settings of rollouts: what their JSON may say, and everything that is wrong with it at once (interfaces.md 8)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.catalog.rollout_settings import (
    MAX_STEPS,
    ROLLOUT_OFF,
    GateSettings,
    Measure,
    OnFailure,
    RolloutMode,
    RolloutSettings,
    RolloutStep,
    Unexposed,
    settings_from_json,
    settings_stored,
    settings_to_store,
)
from controlplane.common.errors import InputInvalid

WHOLE: dict[str, Any] = {
    "mode": "steps",
    "steps": [
        {"kinds": 1, "groups": ["canaries"], "bake": "90s"},
        {"clients": 20, "bake": "5m", "gates": {"errors": False, "lost_percent": 5}},
        {"percent": 12.5, "approve": True},
        {"percent": 100},
    ],
    "immediate": ["endpoint"],
    "on_failure": "abort",
    "unexposed": "wait",
    "answer_within": "45s",
    "silent_percent": 0,
    "prefer_group": "canaries",
    "rehearsal_group": "lab",
    "four_eyes": True,
    "gates": {"webhooks": ["https://judge.example/ask"]},
}


def pointers(data: object, groups: tuple[str, ...] | None = None) -> list[str]:
    """The places of everything that is wrong."""
    with pytest.raises(InputInvalid) as failure:
        settings_from_json(data, groups=groups)
    return sorted(finding.pointer for finding in failure.value.findings)


def test_settings__whole__are_read_as_they_stand() -> None:
    settings = settings_from_json(WHOLE, groups=("canaries", "lab"))

    assert settings == RolloutSettings(
        mode=RolloutMode.STEPS,
        steps=(
            RolloutStep(Measure.KINDS, 1, ("canaries",), bake_s=90),
            RolloutStep(Measure.CLIENTS, 20, bake_s=300, gates=GateSettings(errors=False, lost_percent=5)),
            RolloutStep(Measure.PERCENT, 125, approve=True),
            RolloutStep(Measure.PERCENT, 1000),
        ),
        immediate=("endpoint",),
        on_failure=OnFailure.ABORT,
        unexposed=Unexposed.WAIT,
        answer_within_s=45,
        silent_percent=0,
        prefer_group="canaries",
        rehearsal_group="lab",
        four_eyes=True,
        gates=GateSettings(webhooks=("https://judge.example/ask",)),
    )
    assert settings.groups == {"canaries", "lab"}
    assert settings.as_json() == WHOLE


@pytest.mark.parametrize("data", [{}, {"mode": "off"}, ROLLOUT_OFF.as_json(), {"prefer_group": None, "steps": None}])
def test_settings__nothing_given__are_off(data: dict[str, object]) -> None:
    settings = settings_from_json(data)

    assert settings == ROLLOUT_OFF
    assert not settings.stages
    assert settings_to_store(settings) is None
    assert settings_stored(None) == ROLLOUT_OFF


def test_settings__several_wrong__all_are_told_with_their_places() -> None:
    wrong = {
        "mode": "canary",
        "steps": [
            {"kinds": 1, "percent": 10},
            {"bake": "5m"},
            {"percent": 0.05},
            {"clients": True},
            {"percent": 50, "bake": "8d", "groups": "all", "gates": {"lost_percent": 101, "load": 1}},
            "all",
        ],
        "immediate": ["endpoint", "certificate"],
        "unexposed": "skip",
        "answer_within": 30,
        "silent_percent": 100,
        "prefer_group": 7,
        "four_eyes": "yes",
        "gates": {"webhooks": ["ftp://x", "https://[x"]},
        "bake": "5m",
    }

    assert pointers(wrong) == [
        "/rollout/answer_within",
        "/rollout/bake",
        "/rollout/four_eyes",
        "/rollout/gates/webhooks",
        "/rollout/gates/webhooks",
        "/rollout/immediate",
        "/rollout/mode",
        "/rollout/prefer_group",
        "/rollout/silent_percent",
        "/rollout/steps/0",
        "/rollout/steps/1",
        "/rollout/steps/2/percent",
        "/rollout/steps/3/clients",
        "/rollout/steps/4/bake",
        "/rollout/steps/4/gates/load",
        "/rollout/steps/4/gates/lost_percent",
        "/rollout/steps/4/groups",
        "/rollout/steps/5",
        "/rollout/unexposed",
    ]


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [
        ([{"percent": 10}, {"percent": 10}, {"percent": 10.1}], []),
        ([{"percent": 10}, {"percent": 9.9}], ["/rollout/steps/1/percent"]),
        ([{"kinds": 2}, {"percent": 1}, {"kinds": 1}], ["/rollout/steps/2/kinds"]),
        ([{"clients": 3}, {"percent": 1}], []),  # what that means is known when a rollout opens
        ([{"percent": 1}] * MAX_STEPS, []),
        ([{"percent": 1}] * (MAX_STEPS + 1), ["/rollout/steps"]),
        ([], ["/rollout/steps"]),
    ],
)
def test_settings__steps__are_one_to_twenty_and_do_not_fall(steps: list[object], wrong: list[str]) -> None:
    data = {"mode": "steps", "steps": steps}

    if wrong:
        assert pointers(data) == wrong
    else:
        assert len(settings_from_json(data).steps) == len(steps)


def test_settings__a_group_that_does_not_exist__is_wrong_where_groups_are_known() -> None:
    assert pointers(WHOLE, groups=("canaries",)) == ["/rollout/rehearsal_group"]
    assert pointers(WHOLE, groups=()) == [
        "/rollout/prefer_group",
        "/rollout/rehearsal_group",
        "/rollout/steps/0/groups",
    ]


@pytest.mark.parametrize("data", [None, [], "pilot", 7])
def test_settings__no_object__is_wrong_at_its_root(data: object) -> None:
    assert pointers(data) == ["/rollout"]


@pytest.mark.parametrize(("mode", "expected"), [("pilot", Unexposed.PROMOTE), ("steps", Unexposed.ASK)])
def test_settings__unexposed_not_given__depends_on_the_mode(mode: str, expected: Unexposed) -> None:
    settings = settings_from_json({"mode": mode, "steps": [{"kinds": 1}]})

    assert settings.unexposed is None
    assert settings.when_unexposed is expected


def test_gates__of_a_step__go_before_those_of_the_environment() -> None:
    assert GateSettings(errors=False).over(GateSettings(True, 5, ("https://a",))) == GateSettings(
        False, 5, ("https://a",)
    )


STEPS = st.lists(st.integers(1, 1000), min_size=1, max_size=MAX_STEPS).map(
    lambda amounts: tuple(RolloutStep(Measure.PERCENT, amount) for amount in sorted(amounts))
)


@given(
    st.builds(
        RolloutSettings,
        mode=st.sampled_from(RolloutMode),
        steps=STEPS,
        immediate=st.lists(st.sampled_from(["endpoint", "runtime", "secret"]), unique=True).map(tuple),
        on_failure=st.sampled_from(OnFailure),
        unexposed=st.none() | st.sampled_from(Unexposed),
        answer_within_s=st.integers(1, 600),
        silent_percent=st.integers(0, 99),
        prefer_group=st.sampled_from(["", "canaries"]),
        four_eyes=st.booleans(),
        gates=st.builds(GateSettings, st.none() | st.booleans(), st.none() | st.integers(0, 100)),
    )
)
def test_settings__stored__are_read_back_as_they_were(settings: RolloutSettings) -> None:
    assert settings_stored(settings_to_store(settings)) == settings
