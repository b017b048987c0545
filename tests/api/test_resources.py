"""One resource: put, read, delete, its history; and the list of all."""

import json
from collections.abc import Callable

import pytest
import yaml

from controlplane.catalog.selectors import resource_get
from tests.api.conftest import Answer, Caller, assert_problem
from tests.support.manifests import TYPE, cluster, endpoints, tls_secret
from xdscore.resource_types import CLUSTER, SECRET

PAY = "environments/default/resources/cluster/pay"


def names(answer: Answer) -> list[str]:
    return [row["name"] for row in answer.json["results"]]


def test_put__new_cluster__202_with_the_change_and_where_to_follow_it(api: Caller) -> None:
    answer = api.put(f"{PAY}?message=first", cluster())

    assert answer.status == 202
    assert answer.headers["ETag"] == '"r1"'
    change = answer.json
    assert answer.headers["Location"] == f"/api/v1/changes/{change['id']}"
    assert (change["changed"], change["state"], change["message"]) == (True, "saved", "first")
    assert change["edits"] == [{"type": "cluster", "name": "pay", "action": "created", "revision": 1}]


def test_put__same_content_again__200_and_no_change(api: Caller, stored: Callable[[], object]) -> None:
    api.put(PAY, cluster())
    before = stored()

    answer = api.put(PAY, cluster())

    assert (answer.status, answer.json) == (200, {"changed": False})
    assert stored() == before


@pytest.mark.parametrize(
    "media", ["application/yaml", "text/yaml", "application/x-yaml", "application/yaml; charset=utf-8"]
)
def test_put__yaml__stores_what_json_would(api: Caller, media: str) -> None:
    api.put(PAY, cluster())

    answer = api.put(PAY, yaml.safe_dump(cluster()), media=media)

    assert answer.json == {"changed": False}


def test_put__message_in_the_header__is_the_changes_message(api: Caller) -> None:
    message = "für Bob"

    answer = api.put(PAY, cluster(), X_Parley_Message=message.encode().decode("latin-1"))

    assert answer.json["message"] == message


def test_put__type_url_in_the_path__means_the_same_type(api: Caller) -> None:
    answer = api.put(f"environments/default/resources/{CLUSTER.url.replace('/', '%2F')}/pay", cluster())

    assert answer.status == 202
    assert resource_get(environment_key="default", kind=CLUSTER, name="pay").revision == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If_Match": '"r1"'}, 202),
        ({"If_Match": '"r7", "r1"'}, 202),
        ({"If_Match": "*"}, 202),
        ({"If_Match": '"r2"'}, 412),
        ({"If_Match": 'W/"r1"'}, 412),
        ({"If_Match": '"other"'}, 412),
        ({"If_None_Match": "*"}, 412),
        ({"If_Match": "r1"}, 422),
        ({"If_None_Match": '"r1"'}, 422),
        ({"If_Match": "*", "If_None_Match": "*"}, 422),
    ],
)
def test_put__with_a_precondition__is_done_only_if_it_holds(api: Caller, headers: dict[str, str], status: int) -> None:
    api.put(PAY, cluster())

    answer = api.put(PAY, cluster(connect_timeout="7s"), **headers)

    assert answer.status == status
    if status == 412:
        assert_problem(answer, 412, "XDS3012")
        assert answer.headers["ETag"] == '"r1"'


def test_put__if_none_match_where_nothing_is__creates(api: Caller) -> None:
    assert api.put(PAY, cluster(), If_None_Match="*").status == 202


@pytest.mark.parametrize(("verb", "where"), [("PUT", ""), ("DELETE", ""), ("POST", "/revisions/1/restore")])
def test_write__environment_demands_a_condition__428_without_one_and_done_with_one(
    api: Caller, verb: str, where: str
) -> None:
    path = f"environments/default/resources/cluster/pay{where}"
    api.put("environments/default/resources/cluster/pay", cluster())
    api.put("environments/default/resources/cluster/pay", cluster(connect_timeout="2s"))
    api.patch("environments/default", {"require_if_match": True})
    body = cluster(connect_timeout="3s") if verb == "PUT" else None

    refused = api(verb, path, body)
    done = api(verb, path, body, If_Match='"r2"')

    assert_problem(refused, 428, "XDS3028")
    assert "If-Match" in refused.json["detail"]
    assert done.status == 202


def test_write__environment_demands_a_condition__what_is_new_says_so_and_apply_has_its_own(api: Caller) -> None:
    api.patch("environments/default", {"require_if_match": True})

    assert api.put("environments/default/resources/cluster/pay", cluster()).status == 428
    assert api.put("environments/default/resources/cluster/pay", cluster(), If_None_Match="*").status == 202
    assert api.post("environments/default/apply", {"resources": [cluster("other")]}).status == 202


def test_get__json_and_yaml__are_the_same_manifest(api: Caller) -> None:
    api.put(PAY, cluster())

    as_json, as_yaml = api.get(PAY), api.get(PAY, Accept="application/yaml, application/json;q=0.5")

    assert as_json.json["name"] == "pay"
    assert as_json.headers["ETag"] == as_yaml.headers["ETag"] == '"r1"'
    assert as_yaml.headers["Content-Type"] == "application/yaml"
    assert yaml.safe_load(as_yaml.content) == as_json.json


def test_get__with_the_revision_it_has__304(api: Caller) -> None:
    api.put(PAY, cluster())

    assert api.get(PAY, If_None_Match='W/"r1"').status == 304
    assert api.get(PAY, If_None_Match='"r2"').status == 200


def test_get__unknown_name__404_that_names_it(api: Caller) -> None:
    answer = api.get(PAY)

    assert_problem(answer, 404, "XDS3004")
    assert "cluster 'pay' in 'default'" in answer.json["detail"]


@pytest.mark.parametrize("form", ["application/json", "application/yaml"])
def test_get__strings_that_look_like_numbers__come_back_as_strings(api: Caller, form: str) -> None:
    odd = {
        "a": "0o17",
        "b": "1e3",
        "c": "012",
        "d": "yes",
        "e": "~",
        "f": "0x1f",
        "g": ".5",
        "h": "2026-01-01",
        "i": "-1_0",
        "j": "=",
        "k": "null",
    }
    tree = cluster(metadata={"filter_metadata": {"x": odd}})
    api.put(PAY, tree)

    text = api.get(PAY, Accept=form).content

    assert api.put(PAY, text, media=form).json == {"changed": False}


def test_get__secret__is_redacted_and_sent_back_means_keep(api: Caller) -> None:
    path = "environments/default/resources/secret/key"
    api.put(path, tls_secret("key", "s3cr3t"))

    read = api.get(path)

    assert b"s3cr3t" not in read.content
    assert read.json["generic_secret"]["secret"]["inline_string"].startswith("<kept:")
    assert api.put(path, read.json).json == {"changed": False}
    assert b"s3cr3t" in resource_get(environment_key="default", kind=SECRET, name="key").any_bytes


def test_put__kept_secret_where_none_is_stored__422_and_nothing_stored(
    api: Caller, stored: Callable[[], object]
) -> None:
    before = stored()

    answer = api.put("environments/default/resources/secret/key", tls_secret("key", "<kept:00>"))

    assert_problem(answer, 422, "XDS1030")
    assert stored() == before


def test_get__wrapped_resource__comes_back_wrapped(api: Caller) -> None:
    name = "xdstp://authority/envoy.config.endpoint.v3.ClusterLoadAssignment/pay/eu?zone=1"
    path = f"environments/default/resources/endpoint/{name.replace('/', '%2F').replace('?', '%3F')}"
    wrapped = {"@type": TYPE + "envoy.service.discovery.v3.Resource", "name": name, "resource": endpoints("pay", 80)}

    put = api.put(path, wrapped)
    read = api.get(path)

    assert put.status == 202
    assert read.json["name"] == name
    assert api.put(path, read.json).json == {"changed": False}


def test_resource__context_parameters_in_any_order__is_one(api: Caller) -> None:
    name = "xdstp://authority/envoy.config.endpoint.v3.ClusterLoadAssignment/pay?zone=1&env=2"
    path, other = (
        f"environments/default/resources/endpoint/{each.replace('/', '%2F').replace('?', '%3F').replace('&', '%26')}"
        for each in (name, name.replace("zone=1&env=2", "env=2&zone=1"))
    )

    assert api.put(path, endpoints(name, 80)).status == 202
    assert api.get(other).json == api.get(path).json
    assert api.get(other).json["cluster_name"] == name
    assert api.put(other, api.get(path).json).json == {"changed": False}
    assert api.delete(other).status == 202
    assert_problem(api.get(path), 404)


def test_delete__resource__202_and_then_404(api: Caller) -> None:
    api.put(PAY, cluster())

    answer = api.delete(f"{PAY}?message=gone", If_Match='"r1"')

    assert answer.status == 202
    assert answer.json["edits"] == [{"type": "cluster", "name": "pay", "action": "deleted", "revision": 2}]
    assert_problem(api.get(PAY), 404)
    assert_problem(api.delete(PAY), 404)


def test_revisions__after_delete_and_create_again__numbers_go_on(api: Caller) -> None:
    api.put(f"{PAY}?message=one", cluster())
    api.delete(PAY)
    api.put(PAY, cluster())

    answer = api.get(f"{PAY}/revisions")

    rows = answer.json["results"]
    assert [(row["revision"], row["deleted"]) for row in rows] == [(3, False), (2, True), (1, False)]
    assert rows[2]["message"] == "one"
    assert rows[0]["content_hash"] == rows[2]["content_hash"]


def test_revisions__name_that_never_was__404(api: Caller) -> None:
    assert_problem(api.get(f"{PAY}/revisions"), 404)


def test_list__pages__link_to_each_other(api: Caller) -> None:
    api.post("environments/default/apply", {"resources": [cluster(each) for each in "abcde"]})

    first = api.get("environments/default/resources?limit=2")
    second = api.get(first.json["next"].partition("/api/v1/")[2])
    back = api.get(second.json["previous"].partition("/api/v1/")[2])

    assert (names(first), names(second), names(back)) == (["a", "b"], ["c", "d"], ["a", "b"])
    assert first.json["count"] == 5
    assert first.json["previous"] is None


def test_list__filters__by_type_owner_and_part_of_the_name(api: Caller) -> None:
    api.post("environments/default/apply", {"resources": [cluster("pay-a"), endpoints("pay-a")], "owner": "team-a"})
    api.post("environments/default/apply", {"resources": [cluster("other")]})

    base = "environments/default/resources"
    assert names(api.get(f"{base}?type=cluster")) == ["other", "pay-a"]
    assert names(api.get(f"{base}?type={CLUSTER.url}&owner=")) == ["other"]
    assert names(api.get(f"{base}?owner=team-a&name=pay")) == ["pay-a", "pay-a"]
    assert_problem(api.get(f"{base}?type=clutser"), 422)


def test_list__with_manifests_as_yaml__is_a_file_that_apply_takes(api: Caller) -> None:
    trees = [cluster("a"), endpoints("a", 1, address="192.0.2.1"), tls_secret("k", "v")]
    api.post("environments/default/apply", {"resources": trees})

    page = api.get("environments/default/resources?manifests=true&limit=1000", Accept="application/yaml")
    same = api.post("environments/default/apply", page.content, media="application/yaml")
    other = api.post("environments/prod/apply", yaml.safe_load(page.content)[:2])

    assert same.json == {"changed": False}
    assert [edit["name"] for edit in other.json["edits"]] == ["a", "a"]


def test_list__with_manifests__holds_each_and_no_secret(api: Caller) -> None:
    api.post("environments/default/apply", {"resources": [cluster("a"), tls_secret("k", "hidden-value")]})

    answer = api.get("environments/default/resources?manifests=true")

    assert [row["manifest"]["name"] for row in answer.json["results"]] == ["a", "k"]
    assert b"hidden-value" not in answer.content


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "offset=-1", "limit=1&limit=2", "lmit=3", "manifests=1"]
)
def test_list__a_parameter_that_cannot_be__422_that_names_it(api: Caller, query: str) -> None:
    answer = api.get(f"environments/default/resources?{query}")

    assert_problem(answer, 422)
    assert query.partition("=")[0] in answer.json["errors"][0]["detail"]


def test_put__warning__is_in_the_answer(api: Caller) -> None:
    wrapped = {
        "@type": TYPE + "envoy.service.discovery.v3.Resource",
        "name": "pay",
        "ttl": "30s",
        "resource": cluster(),
    }

    answer = api.put(PAY, json.dumps(wrapped))

    assert [finding["code"] for finding in answer.json["findings"]] == ["XDS1028"]
    assert api.get(PAY).json["ttl"] == "30s"


def test_restore__earlier_revision__is_current_again_under_its_etag(api: Caller) -> None:
    api.put("environments/default/resources/cluster/pay", cluster())
    api.put("environments/default/resources/cluster/pay", cluster(connect_timeout="9s"))

    stale = api.post("environments/default/resources/cluster/pay/revisions/1/restore", If_Match='"r1"')
    answer = api.post("environments/default/resources/cluster/pay/revisions/1/restore", If_Match='"r2"')

    assert_problem(stale, 412)
    assert (answer.status, answer.headers["ETag"]) == (202, '"r3"')
    assert answer.json["message"] == "restore of cluster 'pay' r1"
    assert api.get("environments/default/resources/cluster/pay").json["connect_timeout"] == "1s"
