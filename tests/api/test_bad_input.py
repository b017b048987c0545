"""Issue 2, Done-when 7: whatever is sent, the answer is a problem that says what and where, and nothing is stored."""

import json
from collections.abc import Callable

import pytest

from tests.api.conftest import Caller, assert_problem
from tests.support.manifests import TYPE, cluster, endpoints, route

PAY = "environments/default/resources/cluster/pay"
APPLY = "environments/default/apply"
CLUSTER_URL = TYPE + "envoy.config.cluster.v3.Cluster"

Stored = Callable[[], tuple[object, ...]]

DEEP = 5_000  # json.loads raises RecursionError here (reliability threat 12)
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

UNREADABLE = {
    "not JSON": ("{'a': 1}", "application/json", "XDS1001", 1),
    "an empty body": ("", "application/json", "XDS1001", 0),
    "blanks only": (" \n ", "application/json", "XDS1001", 0),
    "half of it": ('{"@type": "' + CLUSTER_URL + '",\n "name":', "application/json", "XDS1001", 2),
    "not UTF-8": (b'{"name": "\xff"}', "application/json", "XDS1001", 1),
    "a key twice": ('{"name": "a",\n "name": "b"}', "application/json", "XDS1002", 2),
    "deep lists": ("[" * DEEP + "]" * DEEP, "application/json", "XDS1004", 1),
    "deep objects": ('{"a":' * DEEP + "1" + "}" * DEEP, "application/json", "XDS1004", 1),
    "NaN": ('{"a": NaN}', "application/json", "", 1),
    "NUL in the text": (b'{"name": "a\x00b"}', "application/json", "", 1),
    "not YAML": ("a: [1,\nb: }", "application/yaml", "XDS1001", 2),
    "a YAML key twice": ("name: a\nname: b\n", "application/yaml", "XDS1002", 2),
    "a YAML bomb": (BOMB, "application/yaml", "XDS1003", 1),
    "a YAML tag": ("a: !!python/object/apply:os.system ['true']\n", "application/yaml", "XDS1003", 1),
    "deep YAML": ("[" * DEEP + "]" * DEEP, "application/yaml", "XDS1004", 1),
    "YAML with a tab": ("a:\n\t- b\n", "application/yaml", "XDS1001", 2),
}


@pytest.mark.parametrize("path", [PAY, APPLY, "validate", "environments", "tokens"])
@pytest.mark.parametrize(("body", "media", "code", "line"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_any_body__that_cannot_be_read__400_with_its_line(
    api: Caller, stored: Stored, path: str, body: str | bytes, media: str, code: str, line: int
) -> None:
    before = stored()

    answer = api("PUT" if path == PAY else "POST", path, body, media=media)

    assert_problem(answer, 400, code)
    assert answer.json["errors"], answer.json
    if line:
        assert answer.json["errors"][0]["line"] == line
    assert stored() == before


REFUSED_MANIFESTS = {
    "unknown @type": ({"@type": TYPE + "envoy.config.cluster.v3.Clutser", "name": "pay"}, "XDS1011", "/@type"),
    "no @type": ({"name": "pay"}, "XDS1010", ""),
    "a type that is no resource": ({"@type": TYPE + "envoy.config.core.v3.Address"}, "XDS1012", "/@type"),
    "an unknown field": (cluster(conect_timeout="1s"), "XDS1013", "/conect_timeout"),
    "a wrong type of value": (cluster(connect_timeout=[1]), "XDS1014", "/connect_timeout"),
    "an unknown enum value": (cluster(lb_policy="ROUND"), "XDS1015", "/lb_policy"),
    "a missing name": (cluster(""), "XDS1020", "/name"),
    "another name than the path": (cluster("billing"), "XDS1023", "/name"),
    "another type than the path": (endpoints("pay"), "XDS1022", "/@type"),
    "a name with NUL": (cluster("pa\0y"), "", ""),
    "a rule of the field": (cluster(connect_timeout="-1s"), "XDS1043", "/connect_timeout"),
}


@pytest.mark.parametrize(("tree", "code", "pointer"), REFUSED_MANIFESTS.values(), ids=REFUSED_MANIFESTS.keys())
def test_put__manifest_that_is_wrong__422_with_its_place(
    api: Caller, stored: Stored, tree: dict[str, object], code: str, pointer: str
) -> None:
    before = stored()

    answer = api.put(PAY, tree)

    assert answer.status in (400, 422)  # a NUL cannot even be read
    assert_problem(answer, answer.status, code)
    if code:
        assert pointer in answer.pointers
    assert stored() == before


# An apply has no address that a manifest could differ from.
WITHOUT_ADDRESS = {name: case for name, case in REFUSED_MANIFESTS.items() if "than the path" not in name}


@pytest.mark.parametrize(("tree", "code", "pointer"), WITHOUT_ADDRESS.values(), ids=WITHOUT_ADDRESS.keys())
def test_apply__one_wrong_manifest_among_good_ones__nothing_is_stored(
    api: Caller, stored: Stored, tree: dict[str, object], code: str, pointer: str
) -> None:
    before = stored()

    answer = api.post(APPLY, {"resources": [cluster("a"), tree, cluster("b")]})

    assert_problem(answer, answer.status, code)
    if code:
        assert f"/resources/1{pointer}" in answer.pointers
    assert stored() == before


def test_put__many_mistakes__all_of_them_at_once(api: Caller) -> None:
    answer = api.put(PAY, cluster(conect_timeout="1s", lb_policy="ROUND", dns_lookup_family=[]))

    assert_problem(answer, 422)
    assert {"/conect_timeout", "/lb_policy", "/dns_lookup_family"} <= set(answer.pointers)
    assert all(error["resource"] == {"type": "cluster", "name": "pay"} for error in answer.json["errors"])


def test_apply__more_mistakes_than_are_listed__says_how_many_more(api: Caller) -> None:
    answer = api.post(APPLY, {"resources": [cluster(f"c{number}", wrong=1) for number in range(250)]})

    assert_problem(answer, 422)
    assert len(answer.json["errors"]) == 200
    assert answer.json["errors_omitted"] == 50
    assert "250 of 250 manifests were refused" in answer.json["detail"]


def test_put__yaml_with_a_mistake__line_and_column(api: Caller) -> None:
    body = f'"@type": {CLUSTER_URL}\nname: pay\n# why\nconect_timeout: 1s\n'

    answer = api.put(PAY, body, media="application/yaml")

    assert (answer.json["errors"][0]["line"], answer.json["errors"][0]["column"]) == (4, 1)


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("word", ["clutser", "CLUSTER", "type.googleapis.com%2Fenvoy.config.cluster.v3.Clutser", "%20"])
def test_path__with_a_type_that_does_not_exist__404_that_names_those_that_do(
    api: Caller, stored: Stored, verb: str, word: str
) -> None:
    before = stored()

    answer = api(verb, f"environments/default/resources/{word}/pay", cluster() if verb == "PUT" else None)

    assert_problem(answer, 404)
    assert "cluster" in answer.json["detail"]
    assert stored() == before


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize("name", ["%00", "a%0Ab", "*", "a" * 1025, "%C2%85"])
def test_path__with_a_name_no_resource_can_have__422(api: Caller, stored: Stored, verb: str, name: str) -> None:
    before = stored()

    answer = api(verb, f"environments/default/resources/cluster/{name}", cluster() if verb == "PUT" else None)

    assert_problem(answer, 422, "XDS1021")
    assert stored() == before


def test_path__that_is_not_utf8__404(api: Caller) -> None:
    assert_problem(api.get("environments/default/resources/cluster/%FF%FE"), 404)


def test_put__ten_mebibytes__413(api: Caller, stored: Stored) -> None:
    before = stored()

    answer = api.put(PAY, json.dumps(cluster(comment="x" * 10 * 1024 * 1024)))

    assert_problem(answer, 413)
    assert "4,194,304" in answer.json["detail"]
    assert stored() == before


def test_put__one_resource_over_its_limit__422(api: Caller, stored: Stored) -> None:
    before = stored()

    answer = api.put(PAY, cluster(alt_stat_name="x" * 1_100_000))

    assert_problem(answer, 422, "XDS1025")
    assert stored() == before


@pytest.mark.parametrize(
    "media",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
    ],
)
def test_put__in_another_form__415_that_says_which(api: Caller, media: str) -> None:
    answer = api.put(PAY, cluster(), media=media)

    assert_problem(answer, 415)
    assert "application/yaml" in answer.json["detail"]


def test_put__compressed__415(api: Caller) -> None:
    assert_problem(api.put(PAY, cluster(), Content_Encoding="gzip"), 415)


@pytest.mark.parametrize("body", ["[]", "{}", "1", "null", '"x"', "true", "[1]", "[[]]", "[null]"])
def test_put__not_a_manifest__422(api: Caller, body: str) -> None:
    assert_problem(api.put(PAY, body), 422)


def test_put__two_manifests__422(api: Caller) -> None:
    assert_problem(api.put(PAY, [cluster(), cluster("b")]), 422)
    assert_problem(api.put(PAY, f"{json.dumps(cluster())}\n---\n{json.dumps(cluster('b'))}", media="text/yaml"), 422)


def test_put__any_nested_in_any_too_deep__422_in_no_time(api: Caller, stored: Stored) -> None:
    before = stored()
    nested: dict[str, object] = {"@type": TYPE + "google.protobuf.Empty", "value": {}}
    for _ in range(20):
        nested = {"@type": TYPE + "google.protobuf.Any", "value": nested}
    answer = api.put(PAY, cluster(typed_extension_protocol_options={"x": nested}))

    assert answer.status in (400, 422)
    assert_problem(answer, answer.status)
    assert stored() == before


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"resource": []}, "", ""),
        ({"resources": [], "mesage": "x"}, "/mesage", "XDS1013"),
        ({"resources": [], "prune": "yes"}, "/prune", "XDS1014"),
        ({"resources": [], "message": 7}, "/message", "XDS1014"),
        ({"resources": [], "message": "a\nb"}, "/message", "XDS1016"),
        ({"resources": [], "message": "x" * 1001}, "/message", "XDS1016"),
        ({"resources": [], "base_epoch": "1"}, "/base_epoch", "XDS1014"),
        ({"resources": [], "base_epoch": 1.0}, "/base_epoch", "XDS1014"),
        ({"resources": [], "owner": ""}, "/owner", "XDS1040"),
        ({"delete": {"type": "cluster"}}, "/delete", "XDS1014"),
        ({"delete": [{"type": "cluster"}]}, "/delete/0/name", "XDS1040"),
        ({"delete": [{"type": "cluster", "name": "a"}, {"type": "clutser", "name": ""}]}, "/delete/1/name", "XDS1040"),
        ({"delete": [{"type": "cluster", "name": "a"}, {"type": "clutser", "name": "b"}]}, "/delete/1/type", "XDS1016"),
        ({"delete": ["a"]}, "/delete/0", "XDS1014"),
        ({"resources": {"a": 1}}, "/resources", ""),
        ({"resources": None}, "/resources", ""),
        ({"resources": [1]}, "/resources/0", "XDS1006"),
    ],
)
def test_apply__document_that_is_wrong__422_with_its_place(
    api: Caller, stored: Stored, body: object, pointer: str, code: str
) -> None:
    before = stored()

    answer = api.post(APPLY, body)

    assert_problem(answer, 422, code)
    if pointer:
        assert pointer in answer.pointers, answer.json
    assert stored() == before


def test_apply__same_name_twice__422_that_names_it(api: Caller, stored: Stored) -> None:
    before = stored()

    answer = api.post(APPLY, {"resources": [cluster("a"), cluster("a")], "delete": [{"type": "cluster", "name": "a"}]})

    assert_problem(answer, 422, "XDS3006")
    assert answer.json["errors"][0]["resource"] == {"type": "cluster", "name": "a"}
    assert stored() == before


@pytest.mark.parametrize(
    "query", ["dryrun=true", "dry_run=1", "dry_run=", "strict=1", "prune=true", f"message={'x' * 1001}"]
)
def test_apply__parameter_that_cannot_be__422_and_no_change(api: Caller, stored: Stored, query: str) -> None:
    before = stored()

    answer = api.post(f"{APPLY}?{query}", {"resources": [route("r", "c")]})

    assert_problem(answer, 422)
    assert stored() == before


def test_apply__too_many_items__413(api: Caller, stored: Stored) -> None:
    before = stored()
    body = {"delete": [{"type": "cluster", "name": f"c{number}"} for number in range(20_001)]}

    assert_problem(api.post(APPLY, body), 413)
    assert stored() == before
