"""The form of the common fields: it shows what the text says, and changes what was filled in and nothing else."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.console.manifest_form import MAX_CHANGES, Applied, Filled, fields_apply, forms_of
from controlplane.console.starters import STARTERS
from xdscore.schema import Media, ParsedResource, parse, read_manifests
from xdscore.schema.text_edit import trees_of, value_at

TLS = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext"
CLUSTER = STARTERS["cluster"].text.replace("name: pay", "name: pay  # whose it is") + "# the end\n"
ENDPOINTS = STARTERS["endpoint"].text
ROUTES = STARTERS["route"].text
LISTENER = STARTERS["listener"].text
ALL = f"{CLUSTER}---\n{ENDPOINTS}---\n{LISTENER}---\n{ROUTES}"


def values(text: str) -> dict[str, str]:
    return {field.name: field.value for form in forms_of(text) for part in form.parts for field in part.fields}


def named(text: str, label: str, number: int = 0) -> str:
    """The name of the input of the field with this label."""
    found = [
        field.name
        for form in forms_of(text)
        for part in form.parts
        for field in part.fields
        if field.common.label == label
    ]
    return found[number]


def fill(text: str, row: str = "", **new: str) -> Applied:
    before = values(text)
    names = {named(text, label.replace("_", " ")): value for label, value in new.items()}
    return fields_apply(text, Filled({**before, **names}, before, row))


def button(text: str, added: str = "", title: str = "") -> str:
    parts = [part for form in forms_of(text) for part in form.parts]
    return next(part.adds if added else part.removes for part in parts if part.added == added and title in part.title)


def changes(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return sorted(line[0] + line[2:] for line in lines if line[0] in "+-")


def is_sound(text: str) -> bool:
    manifests, _ = read_manifests(text.encode(), Media.YAML)
    return bool(manifests) and all(isinstance(parse(each), ParsedResource) for each in manifests)


def test_forms__of_a_text_of_several_documents__are_those_of_each() -> None:
    forms = forms_of(ALL)

    assert [(form.kind.word, form.name) for form in forms] == [
        ("cluster", "pay"),
        ("endpoint", "pay"),
        ("listener", "ingress"),
        ("route", "edge"),
    ]
    shown = values(ALL)
    assert shown["/0/connect_timeout"] == "1s"
    assert shown["/1/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value"] == "8080"
    assert shown["/3/virtual_hosts/0/domains"] == "*"
    assert "edge" in shown.values()  # the route configuration of the listener


def test_fill__nothing_changed__leaves_the_text_as_it_is() -> None:
    assert fill(ALL) == Applied(ALL)


@pytest.mark.parametrize(
    ("text", "new", "changed"),
    [
        (CLUSTER, {"Connect_timeout": "2s"}, ["+connect_timeout: 2s", "-connect_timeout: 1s"]),
        (CLUSTER, {"Connect_timeout": ""}, ["-connect_timeout: 1s"]),
        (CLUSTER, {"Load_balancing": "MAGLEV"}, ["+lb_policy: MAGLEV"]),
        (CLUSTER, {"Most_connections": "10", "Most_retries": "2"},
         ["+    max_retries: 2", "+  - max_connections: 10", "+  thresholds:", "+circuit_breakers:"]),
        (CLUSTER, {"Server_name_(SNI)": "pay.example"},
         [f"+    '@type': {TLS}", "+    sni: pay.example", "+  name: envoy.transport_sockets.tls", "+  typed_config:",
          "+transport_socket:"]),
        (ENDPOINTS, {"Health": "DRAINING"}, ["+    health_status: DRAINING"]),
        (ENDPOINTS, {"Port": "81", "Address": "10.0.0.1"},
         ["+        socket_address: {address: 10.0.0.1, port_value: 81}",
          "-        socket_address: {address: 192.0.2.10, port_value: 8080}"]),
        (LISTENER, {"Route_configuration": "shop"},
         ["+        route_config_name: shop", "-        route_config_name: edge"]),
        (ROUTES, {"Domains": "*, b.example"}, ['+  domains: ["*", b.example]', '-  domains: ["*"]']),
        (ROUTES, {"Path_begins_with": "", "Path_is": "/pay"},
         ["+  - match: {path: /pay}", "-  - match: {prefix: /}"]),
    ],
)  # fmt: skip
def test_fill__fields__changes_their_lines_alone(text: str, new: dict[str, str], changed: list[str]) -> None:
    applied = fill(text, **new)

    assert applied.problems == {}
    assert changes(text, applied.text) == changed
    assert is_sound(applied.text)


def test_fill__tls_and_a_health_check__are_whole_and_sound() -> None:
    applied = fill(
        CLUSTER,
        Client_certificate="own",
        Authority_that_is_trusted="ca",
        Path="/healthz",
        Type="STRICT_DNS",
        EDS_name="",
    )

    assert applied.problems == {}
    tree = trees_of(applied.text)[0]
    assert value_at(tree, ("health_checks", 0, "interval")) == "10s"
    context = ("transport_socket", "typed_config", "common_tls_context")
    assert value_at(tree, (*context, "tls_certificate_sds_secret_configs", 0, "name")) == "own"
    assert values(applied.text)["/0/health_checks/0/http_health_check/path"] == "/healthz"


def test_rows__added_and_removed__leave_the_others_alone() -> None:
    more = fill(ENDPOINTS, button(ENDPOINTS, "an endpoint"))
    less = fill(more.text, button(more.text, title="Endpoint 1.1"))

    assert is_sound(more.text)
    assert more.text.startswith(ENDPOINTS)
    assert values(less.text).keys() == values(ENDPOINTS).keys()
    hosts = fill(ROUTES, button(ROUTES, "a virtual host"))
    assert hosts.text.startswith(ROUTES)
    assert values(hosts.text)["/0/virtual_hosts/1/name"] == "host-1"


def test_row__that_is_another_one_by_now__is_not_removed() -> None:
    more = fill(ENDPOINTS, button(ENDPOINTS, "an endpoint")).text

    applied = fields_apply(more.replace("192.0.2.10", "192.0.2.99"), Filled({}, {}, button(more, title="Endpoint 1.2")))

    assert applied.text == more.replace("192.0.2.10", "192.0.2.99")
    assert "other rows by now" in applied.problems[""]


def test_fill__value_that_the_text_changed_meanwhile__is_left_alone_and_said() -> None:
    name = named(CLUSTER, "Connect timeout")
    text = CLUSTER.replace("connect_timeout: 1s", "connect_timeout: 9s")
    filled = Filled({name: "2s"}, {name: "1s"})

    applied = fields_apply(text, filled)

    assert applied.text == text
    [form] = forms_of(text, filled=filled, applied=applied)
    field = form.parts[0].fields[2]
    assert (field.value, field.shown) == ("9s", "2s")
    assert "by now" in field.problem


def test_fill__json_in_its_second_spelling__is_kept_so() -> None:
    text = '{"@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",\n "name": "pay", "connectTimeout": "1s"}'

    assert fill(text, Connect_timeout="2s").text == text.replace("1s", "2s")


@pytest.mark.parametrize("text", ["", "a: [", "a: 1", "- 1", '"@type": x', STARTERS["secret"].text, "[" * 5000])
def test_forms__of_a_text_without_common_fields__are_none(text: str) -> None:
    assert forms_of(text) == ()
    assert fields_apply(text, Filled({"/0/name": "x"}, {})).text == text


def test_forms__of_far_too_much__are_none() -> None:
    rows = ENDPOINTS + "".join(f"- lb_endpoints:\n  - load_balancing_weight: {n}\n" for n in range(100))

    assert forms_of(rows) == forms_of(CLUSTER + "#" * 60_000) == ()
    many = {f"/0/{number}": "x" for number in range(MAX_CHANGES + 1)}
    assert fields_apply(CLUSTER, Filled(many, {})).text == CLUSTER


@given(data=st.data())
def test_fill__any_fields_of_a_commented_text__change_those_and_no_comment_or_unknown_field(
    data: st.DataObject,
) -> None:
    word = data.draw(st.sampled_from(["cluster", "endpoint", "listener", "route"]))
    lines = STARTERS[word].text.splitlines()
    marks = data.draw(st.sets(st.integers(0, len(lines) - 1)))
    marked = [f"{'# mark ' + str(at) + chr(10) if at in marks else ''}{line}" for at, line in enumerate(lines)]
    text = "\n".join(marked) + "\nunknown: {b: 1, a: [2]}  # mark kept\n"
    before = values(text)
    names = st.sampled_from(sorted(before))
    new = data.draw(st.dictionaries(names, st.text("ab1/.: #'\"{}", min_size=1, max_size=6).map(str.strip), max_size=4))

    applied = fields_apply(text, Filled({**before, **new}, before))

    after = values(applied.text)
    assert [line for line in applied.text.splitlines() if "# mark" in line] == [
        line for line in text.splitlines() if "# mark" in line
    ]
    for name, value in before.items():
        if name not in new and name in after and value:
            assert after[name] == value
    for name, value in new.items():
        if name not in applied.problems and value and name in after and not name.endswith("/domains"):
            assert after[name] == value
