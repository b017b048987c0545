"""Environments: made, changed by those who may, deleted with everything in them."""

from collections.abc import Callable

import pytest

from controlplane.catalog.models import Environment, Resource, Revision
from tests.api.conftest import Caller, assert_problem
from tests.support.manifests import cluster, endpoints, tls_secret
from xdscore.schema.content_policy import KINDS

Stored = Callable[[], tuple[object, ...]]


def test_create__with_selectors_and_policies__is_behind_the_others(api: Caller) -> None:
    body = {
        "key": "eu-west",
        "selectors": [{"node_id": "eu-*", "metadata": {"zone": "a*"}}, {"identity": "spiffe://corp/*"}],
        "default_effect": "allow",
        "quarantine": "automatic",
        "hold": "not yet",
        "deep_validation": True,
        "require_if_match": True,
    }

    answer = api.post("environments", body)

    assert answer.status == 201
    assert answer.headers["Location"] == "/api/v1/environments/eu-west"
    assert {key: answer.json[key] for key in body} == body
    assert answer.json["change"]
    assert api.get("environments/eu-west").json == {key: value for key, value in answer.json.items() if key != "change"}
    assert [each["key"] for each in api.get("environments").json["results"]] == ["default", "prod", "eu-west"]


def test_create__with_a_key_only__denies_by_default(api: Caller) -> None:
    answer = api.post("environments", {"key": "b"})

    assert (answer.json["default_effect"], answer.json["quarantine"], answer.json["hold"]) == ("deny", "suggest", None)


def test_create__key_that_is_taken__409(api: Caller, stored: Stored) -> None:
    before = stored()

    assert_problem(api.post("environments", {"key": "prod"}), 409)
    assert stored() == before


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/key"),
        ({"key": "Prod"}, "/key"),
        ({"key": "-a"}, "/key"),
        ({"key": "a" * 64}, "/key"),
        ({"key": 7}, "/key"),
        ({"key": "a", "sellectors": []}, "/sellectors"),
        ({"key": "a", "selectors": {}}, "/selectors"),
        ({"key": "a", "selectors": [{}]}, "/selectors/0"),
        ({"key": "a", "selectors": [{"node_id": ""}]}, "/selectors/0/node_id"),
        ({"key": "a", "selectors": [{"node": "x"}]}, "/selectors/0/node"),
        ({"key": "a", "selectors": [{"node_id": "a*b*c*"}]}, "/selectors/0/node_id"),
        ({"key": "a", "selectors": [{"node_id": "a" * 257}]}, "/selectors/0/node_id"),
        ({"key": "a", "selectors": [{"node_id": "a\nb"}]}, "/selectors/0/node_id"),
        ({"key": "a", "selectors": [{"metadata": {"k": 1}}]}, "/selectors/0/metadata/k"),
        ({"key": "a", "selectors": [{"metadata": {"": "x"}}]}, "/selectors/0/metadata"),
        ({"key": "a", "selectors": [{"metadata": {str(n): "x" for n in range(17)}}]}, "/selectors/0/metadata"),
        ({"key": "a", "selectors": [{"node_id": "x"}] * 101}, "/selectors"),
        ({"key": "a", "default_effect": "hide"}, "/default_effect"),
        ({"key": "a", "quarantine": True}, "/quarantine"),
        ({"key": "a", "hold": "x" * 501}, "/hold"),
        ([], ""),
        ("x", ""),
    ],
)
def test_create__body_that_is_wrong__422_with_its_place(
    api: Caller, stored: Stored, body: object, pointer: str
) -> None:
    before = stored()

    answer = api.post("environments", body if isinstance(body, dict | list) else '"x"')

    assert_problem(answer, 422)
    assert pointer in answer.pointers, answer.json
    assert stored() == before


def test_patch__one_field__leaves_the_others(api: Caller) -> None:
    api.post("environments", {"key": "eu", "selectors": [{"node_id": "eu-*"}], "hold": "stop"})

    answer = api.patch("environments/eu", {"hold": None})

    assert answer.json["hold"] is None
    assert answer.json["selectors"] == [{"node_id": "eu-*"}]
    assert answer.json["change"]


def test_patch__what_it_is_already__makes_no_change(api: Caller, stored: Stored) -> None:
    before = stored()

    answer = api.patch("environments/prod", {"default_effect": "deny"})

    assert answer.json["change"] is None
    assert stored() == before


@pytest.mark.parametrize("body", [{}, {"key": "other"}, {"hold": 1}, {"selectors": None}])
def test_patch__body_that_is_wrong__422(api: Caller, stored: Stored, body: object) -> None:
    before = stored()

    assert_problem(api.patch("environments/prod", body), 422)
    assert stored() == before


@pytest.mark.parametrize(
    ("role", "field", "allowed"),
    [
        ("operator", {"hold": "x"}, True),
        ("operator", {"quarantine": "off"}, True),
        ("operator", {"deep_validation": True}, False),
        ("operator", {"require_if_match": True}, False),
        ("operator", {"default_effect": "allow"}, False),
        ("operator", {"selectors": []}, False),
        ("operator", {"hold": "x", "default_effect": "allow"}, False),
        ("access-editor", {"default_effect": "allow"}, True),
        ("access-editor", {"hold": "x"}, False),
        ("editor", {"hold": "x"}, False),
        ("viewer", {"hold": "x"}, False),
        ("admin", {"hold": "x", "default_effect": "allow", "selectors": [], "quarantine": "off"}, True),
    ],
)
def test_patch__each_field__needs_its_own_role(
    as_role: Callable[[str, str | None], Caller], role: str, field: dict[str, object], allowed: bool
) -> None:
    answer = as_role(role, "prod").patch("environments/prod", field)

    if allowed:
        assert answer.status == 200
    else:
        assert_problem(answer, 403)
        assert Environment.objects.get(key="prod").hold_reason == ""


def test_delete__with_resources_in_it__removes_all_of_them(api: Caller) -> None:
    api.post("environments/prod/apply", {"resources": [cluster("a"), tls_secret("s", "v")]})
    api.post("environments/prod/apply", {"delete": [{"type": "cluster", "name": "a"}]})

    answer = api.delete("environments/prod")

    assert answer.status == 204
    assert_problem(api.get("environments/prod"), 404)
    assert not Resource.objects.exists()
    assert not Revision.objects.exists()


def test_delete__default__409(api: Caller) -> None:
    assert_problem(api.delete("environments/default"), 409)
    assert_problem(api.delete("environments/nowhere"), 404)


def test_patch__content__changes_the_kinds_it_names_and_then_decides(api: Caller) -> None:
    refused = api.put("environments/prod/resources/endpoint/pay", endpoints("pay", 80))
    patched = api.patch("environments/prod", {"content": {"loopback": "warn"}})
    warned = api.put("environments/prod/resources/endpoint/pay", endpoints("pay", 80))

    assert_problem(refused, 422)
    assert [(each["code"], each["severity"]) for each in refused.json["errors"]] == [("XDS1074", "error")]
    assert patched.json["content"] == dict.fromkeys(KINDS, "refuse") | {"loopback": "warn"}
    assert warned.status == 202
    assert [(each["code"], each["severity"]) for each in warned.json["findings"]] == [("XDS1074", "warning")]


@pytest.mark.parametrize("content", [{"lua": "maybe"}, {"lau": "allow"}, "allow"])
def test_patch__content_that_is_none__is_refused(api: Caller, content: object) -> None:
    assert_problem(api.patch("environments/prod", {"content": content}), 422)
