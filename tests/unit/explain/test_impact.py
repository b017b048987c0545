"""What edits would mean to connected clients, by what they ask for and may read."""

from hypothesis import given
from hypothesis import strategies as st

from controlplane.clients.asks import Asks, FleetAsks
from controlplane.explain.impact import Edited, GroupImpact, Impact, impact_of
from xdscore.access import AccessTable, Effect, Rule
from xdscore.client_groups import ClientGroup
from xdscore.environment_choice import ClientFacts, Selector

CORE = ClientGroup("core", (Selector(node_id="core-*"),))
EDGE = ClientGroup("edge", (Selector(node_id="*-edge"),))
OPEN = AccessTable(Effect.ALLOW, (CORE, EDGE))


def node(name: str) -> ClientFacts:
    return ClientFacts(node_id=name)


def fleet(**asked: tuple[str, ...] | None) -> FleetAsks:
    """Clients by node id (an underscore is a dash), each asking for these clusters; None: for all of them."""
    clients = {each: node(each.replace("_", "-")) for each in asked}
    asks = tuple(Asks(each, "cluster", names is None, each) for each, names in asked.items())
    return FleetAsks(clients, asks, {each: names or () for each, names in asked.items()})


def judged(clients: FleetAsks, *edits: Edited, table: AccessTable = OPEN) -> Impact:
    return impact_of(edits, environment="default", table=table, fleet=clients)


def losing(impact: Impact) -> dict[str, tuple[tuple[str, str], ...]]:
    return {each.client: each.resources for each in impact.losing}


def test_impact__put__concerns_whoever_asks_by_name_or_wildcard() -> None:
    clients = fleet(core_1=("pay",), core_2=None, other=("cart",))

    found = judged(clients, Edited("cluster", "pay", deleted=False))

    assert (found.connected, found.receive, found.losing) == (3, 2, ())
    assert found.groups == (GroupImpact("core", connected=2, receive=2, lose=0),)


def test_impact__deletion__is_lost_by_whoever_asks_for_it() -> None:
    clients = fleet(core_1=("pay", "cart"), core_edge=("cart",), other=None)

    found = judged(clients, Edited("cluster", "pay", deleted=True), Edited("cluster", "cart", deleted=False))

    assert losing(found) == {"core_1": (("cluster", "pay"),), "other": (("cluster", "pay"),)}
    assert found.groups == (
        GroupImpact("", connected=1, receive=1, lose=1),
        GroupImpact("core", connected=2, receive=2, lose=1),
        GroupImpact("edge", connected=1, receive=1, lose=0),
    )


def test_impact__name_that_may_not_be_read__concerns_nobody_it_is_refused_to() -> None:
    rules = (Rule(1, Effect.ALLOW, "pay", frozenset({"core"})), Rule(2, Effect.HIDE, "pay"))
    table = AccessTable(Effect.ALLOW, (CORE, EDGE), rules)
    clients = fleet(core_1=None, other_edge=None)

    found = judged(clients, Edited("cluster", "pay", deleted=True), table=table)

    assert losing(found) == {"core_1": (("cluster", "pay"),)}
    assert [each.key for each in found.groups] == ["core"]


def test_impact__another_type_of_the_same_name__concerns_nobody() -> None:
    assert judged(fleet(core_1=None), Edited("listener", "pay", deleted=True)).receive == 0


def test_impact__glob_collection__holds_its_members_alone() -> None:
    member, elsewhere = (f"xdstp://auth/envoy.config.cluster.v3.Cluster/{path}" for path in ("pay/a", "cart/a"))
    clients = fleet(core_1=("xdstp://auth/envoy.config.cluster.v3.Cluster/pay/*",), core_2=None)

    found = judged(clients, Edited("cluster", member, deleted=True), Edited("cluster", elsewhere, deleted=True))

    assert losing(found) == {"core_1": (("cluster", member),)}  # a wildcard does not ask for xdstp names


def test_impact__nobody_is_connected__nothing() -> None:
    assert judged(fleet(), Edited("cluster", "pay", deleted=True)) == Impact(0, 0, (), ())


NAMES = st.sampled_from(["a", "b", "c"])


@given(
    asked=st.dictionaries(
        st.sampled_from(["core_1", "core_2", "core_edge", "x_edge", "x"]),
        st.none() | st.frozensets(NAMES).map(lambda names: tuple(sorted(names))),
    ),
    edits=st.dictionaries(NAMES, st.booleans()),
    denied=st.frozensets(NAMES),
)
def test_impact__any_fleet__is_what_asking_one_client_after_the_other_says(
    asked: dict[str, tuple[str, ...] | None], edits: dict[str, bool], denied: frozenset[str]
) -> None:
    rules = tuple(
        Rule(number, Effect.DENY, name, frozenset({"core"})) for number, name in enumerate(sorted(denied), start=1)
    )
    clients = fleet(**asked)
    table = AccessTable(Effect.ALLOW, (CORE, EDGE), rules)

    found = judged(clients, *(Edited("cluster", *each) for each in edits.items()), table=table)

    def touched(client: str) -> set[str]:
        names = asked[client]
        mine = edits.keys() if names is None else edits.keys() & set(names)
        return {name for name in mine if not (client.startswith("core") and name in denied)}

    receiving = {client for client in asked if touched(client)}
    lost = {client: {name for name in touched(client) if edits[name]} for client in asked}
    assert found.receive == len(receiving)
    assert {client: {name for _, name in keys} for client, keys in losing(found).items()} == {
        client: names for client, names in lost.items() if names
    }
    in_core = [client for client in receiving if client.startswith("core")]
    assert sum(each.receive for each in found.groups if each.key == "core") == len(in_core)
