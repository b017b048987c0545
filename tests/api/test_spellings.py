"""Spellings that Envoy takes, over REST: each write warns whoever writes, stores the canonical form, and with
`strict` refuses.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import Answer, Caller, assert_problem
from tests.support.manifests import cluster, route

HERE = "environments/default"
Send = Callable[[Caller, dict[str, Any], str], Answer]


def put(api: Caller, tree: dict[str, Any], query: str) -> Answer:
    return api.put(f"{HERE}/resources/cluster/a{query}", tree)


def apply(api: Caller, tree: dict[str, Any], query: str) -> Answer:
    return api.post(f"{HERE}/apply{query}", {"resources": [tree]})


def try_out(api: Caller, tree: dict[str, Any], query: str) -> Answer:
    return api.post(f"{HERE}/apply{query or '?'}&dry_run=true", {"resources": [tree]})


def propose(api: Caller, tree: dict[str, Any], query: str) -> Answer:
    return api.post(f"{HERE}/change-sets{query}", {"title": "pay", "resources": [tree]})


def edit(api: Caller, tree: dict[str, Any], query: str) -> Answer:
    made = api.post(f"{HERE}/change-sets", {"title": "pay", "resources": [cluster("b")]})
    return api.patch(f"change-sets/{made.json['id']}{query}", {"resources": [tree], "delete": []})


@pytest.mark.parametrize("send", [put, apply, try_out, propose, edit])
def test_write__other_spellings__warned_of_with_their_places_and_refused_when_strict(
    api: Caller, stored: Callable[[], object], send: Send
) -> None:
    tree = cluster("a", connect_timeout={"seconds": 2}, type="static", respect_dns_ttl="true")
    before = stored()

    strict = send(api, tree, "?strict=true")
    assert send is edit or stored() == before
    lenient = send(api, tree, "")

    expected = {("XDS1038", "connect_timeout"), ("XDS1031", "type"), ("XDS1035", "respect_dns_ttl")}
    assert_problem(strict, 422)
    assert {(each["code"], each["pointer"].rpartition("/")[2]) for each in strict.json["errors"]} == expected
    assert {
        (each["code"], each["pointer"].rpartition("/")[2])
        for each in lenient.json["findings"]
        if each["severity"] == "warning" and each["code"].startswith("XDS103")
    } == expected


def test_put__other_spellings__what_is_stored_and_shown_is_canonical_and_the_change_keeps_the_warnings(
    api: Caller,
) -> None:
    made = put(api, cluster("a", connect_timeout={"seconds": 2}), "")

    shown = api.get(f"{HERE}/resources/cluster/a").json
    status = api.get(f"{HERE}/resources/cluster/a?status=true").json
    change = api.get(f"changes/{made.json['id']}").json
    assert shown["connect_timeout"] == "2s"
    assert [each["code"] for each in change["findings"]] == ["XDS1038"]
    assert status["findings"] in ([], 0)


def test_apply__bootstrap_with_a_nameless_listener__is_stored_after_its_address_with_a_warning(api: Caller) -> None:
    address = {"socket_address": {"address": "10.0.0.1", "port_value": 8080}}
    echo = {"@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo"}
    chains = [{"filters": [{"name": "echo", "typed_config": echo}]}]
    bootstrap = {"static_resources": {"listeners": [{"address": address, "filter_chains": chains}]}}

    strict = api.post(f"{HERE}/apply?strict=true", bootstrap)
    made = api.post(f"{HERE}/apply", bootstrap)

    assert_problem(strict, 422)
    assert [each["code"] for each in strict.json["errors"]] == ["XDS1063"]
    assert [each["name"] for each in made.json["edits"]] == ["10.0.0.1:8080"]
    assert [each["code"] for each in api.get(f"changes/{made.json['id']}").json["findings"]] == ["XDS1063"]


def test_change__a_needed_name_is_deleted__the_warning_stays_with_the_change(api: Caller) -> None:
    apply(api, cluster("a"), "")
    api.post(f"{HERE}/apply", {"resources": [route("r", "a")]})

    made = api.post(f"{HERE}/apply", {"delete": [{"type": "cluster", "name": "a"}]})

    assert [each["code"] for each in made.json["findings"]] == ["XDS3007"]
    assert [each["code"] for each in api.get(f"changes/{made.json['id']}").json["findings"]] == ["XDS3007"]
