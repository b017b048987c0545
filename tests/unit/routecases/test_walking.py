"""Which cases a write can touch: what is not judged again ends as before, whatever the write."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.routecases.values import Expected, RouteCaseDraft
from controlplane.routecases.walking import ANY_LISTENER, cases_walked, moved_by, use_of
from tests.support.manifests import Tree, api_listener, cluster, endpoints, listener
from tests.support.routing import NONE, held
from xdscore.environment_choice import ClientFacts
from xdscore.routing.values import Answer, Given, Key, Request

NAMES = ("a", "b")
HOSTS = ("a", "b.example")


class Held:
    """What there is, in memory; counts how often it was read."""

    def __init__(self, trees: Sequence[Mapping[str, Any]]) -> None:
        self.has = held(*trees)
        self.loads = 0

    def listeners(self) -> Sequence[str]:
        return sorted(name for word, name in self.has if word == "listener")

    def load(self, keys: Collection[Key]) -> None:
        self.loads += bool(keys)

    def given(self, key: Key, client: ClientFacts | None) -> Given:
        assert client is None
        return self.has.get(key, NONE)


def case(authority: str = "a", path: str = "/", *, to: str = "") -> RouteCaseDraft:
    return RouteCaseDraft("case", Request(authority, path), Expected(Answer.ROUTED), listener=to)


def virtual_host(domain: str, target: str, prefix: str = "/") -> Tree:
    return {
        "name": domain,
        "domains": [domain],
        "routes": [{"match": {"prefix": prefix}, "route": {"cluster": target}}],
    }


def routes(name: str, *hosts: Tree, on_demand: bool = False) -> Tree:
    more: Tree = {"vhds": {"config_source": {"ads": {}, "resource_api_version": "V3"}}} if on_demand else {}
    return {
        "@type": "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
        "name": name,
        "virtual_hosts": list(hosts),
        **more,
    }


names = st.sampled_from(NAMES)
hosts = st.builds(virtual_host, st.sampled_from((*HOSTS, "*")), names, st.sampled_from(("/", "/x")))
resources = st.one_of(
    st.builds(listener, names, names, st.sampled_from((80, 443, 8080))),
    st.builds(api_listener, names, names),
    st.builds(lambda name, host, vhds: routes(name, host, on_demand=vhds), names, hosts, st.booleans()),
    st.builds(lambda name, eds: cluster(name, eds=eds), names, st.booleans()),
    st.builds(endpoints, names, st.integers(1, 3)),
    st.builds(
        lambda name, host: {
            "@type": "type.googleapis.com/envoy.config.route.v3.VirtualHost",
            **host,
            "name": f"{name}/{host['domains'][0]}",
        },
        names,
        hosts,
    ),
)
environments = st.lists(resources, max_size=12)
cases = st.builds(
    case, st.sampled_from((*HOSTS, "a:8080")), st.sampled_from(("/", "/x")), to=st.sampled_from(("", *NAMES))
)


@settings(max_examples=400, deadline=None)
@given(
    before=environments, written=environments, deleted=st.integers(0, 3), asked=st.lists(cases, min_size=1, max_size=4)
)
def test_case__that_a_write_does_not_touch__ends_as_before(
    before: list[Tree], written: list[Tree], deleted: int, asked: list[RouteCaseDraft]
) -> None:
    has, puts = held(*before), held(*written)
    gone = [key for key in sorted(has) if key not in puts][:deleted]
    after = Held([])
    after.has = {key: each for key, each in (has | puts).items() if key not in gone}
    moved = moved_by({**dict.fromkeys(puts, b"new"), **dict.fromkeys(gone)}, frozenset(has))

    numbered = list(enumerate(asked))
    was, becomes = cases_walked(numbered, Held(before)), cases_walked(numbered, after)

    for old, new in zip(was, becomes, strict=True):
        if moved.isdisjoint(old.uses):
            assert new.end.same == old.end.same
            assert new.uses == old.uses


def test_uses__of_a_request_without_a_listener__are_every_listener() -> None:
    has = Held([listener("edge", "a", 80), routes("a", virtual_host("*", "a")), cluster("a")])

    [run] = cases_walked([(None, case())], has)

    assert run.uses == {ANY_LISTENER, "route a", "cluster a"}
    assert run.holds


def test_uses__of_a_grpc_target__are_its_listener_alone() -> None:
    has = Held([api_listener("a", "a"), listener("edge", "a", 80), routes("a", virtual_host("*", "a")), cluster("a")])

    [run] = cases_walked([(None, case())], has)

    assert run.uses == {"listener a", "route a", "cluster a"}


def test_moved__endpoints_that_there_were__move_nothing() -> None:
    key = ("endpoint", "a")

    assert moved_by({key: b"new"}, {key}) == frozenset()
    assert moved_by({key: b"new"}, frozenset()) == moved_by({key: None}, {key}) == {use_of(key)}


def test_walk__of_many_cases__reads_what_they_need_next_at_once() -> None:
    trees = [listener("edge", "a", 80), routes("a", virtual_host("*", "a")), cluster("a", eds=True), endpoints("a", 1)]
    few, many = Held(trees), Held(trees)

    cases_walked([(None, case())], few)
    cases_walked([(number, case(path=f"/{number}")) for number in range(50)], many)

    assert many.loads == few.loads
