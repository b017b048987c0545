"""Validate: findings without state."""

from collections.abc import Callable

import pytest

from tests.api.conftest import Caller, assert_problem
from tests.support.manifests import TYPE, cluster, tls_secret


def test_validate__sound_manifests__valid_and_nothing_stored(api: Caller, stored: Callable[[], object]) -> None:
    before = stored()

    answer = api.post("validate", {"resources": [cluster("a"), cluster("b"), tls_secret("s", "v")]})

    assert (answer.status, answer.json["valid"], answer.json["findings"]) == (200, True, [])
    assert stored() == before


@pytest.mark.parametrize("prefix", ["/resources", ""])
def test_validate__wrong_ones__every_finding_with_its_place(api: Caller, prefix: str) -> None:
    trees = [cluster("a", wrong=1), cluster("b"), cluster("", lb_policy="X")]

    answer = api.post("validate", {"resources": trees} if prefix else trees)

    assert answer.json["valid"] is False
    places = {finding["pointer"]: finding["code"] for finding in answer.json["findings"]}
    assert places[f"{prefix}/0/wrong"] == "XDS1013"
    assert places[f"{prefix}/2/lb_policy"] == "XDS1015"
    assert places[f"{prefix}/2/name"].startswith("XDS")


def test_validate__warning_only__is_valid(api: Caller) -> None:
    wrapped = {
        "@type": TYPE + "envoy.service.discovery.v3.Resource",
        "name": "a",
        "ttl": "30s",
        "resource": cluster("a"),
    }

    answer = api.post("validate", wrapped)

    assert answer.json["valid"] is True
    assert [finding["severity"] for finding in answer.json["findings"]] == ["warning"]


@pytest.mark.parametrize(
    "body", [{}, [], "1", {"resources": []}, {"resources": [1]}, {"resources": None}, {"resorces": []}]
)
def test_validate__what_is_no_resource__is_answered_or_refused_with_a_reason(api: Caller, body: object) -> None:
    answer = api.post("validate", body)

    if answer.status == 200:
        assert answer.json["valid"] == (body == {"resources": []})
        assert answer.json["valid"] or answer.json["findings"]
    else:
        assert_problem(answer, 422)


def test_validate__other_spellings__are_warned_of_or_refused_when_strict(api: Caller) -> None:
    body = {"resources": [cluster("a", lb_policy="random")]}

    lenient, strict = api.post("validate", body), api.post("validate?strict=true", body)

    assert (lenient.json["valid"], strict.json["valid"]) == (True, False)
    assert [(each["code"], each["severity"], each["pointer"]) for each in lenient.json["findings"]] == [
        ("XDS1031", "warning", "/resources/0/lb_policy")
    ]
    assert [(each["code"], each["severity"]) for each in strict.json["findings"]] == [("XDS1031", "error")]
