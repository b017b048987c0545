"""The groups of a client, found without asking each group, are those that each group says."""

from hypothesis import example, given
from hypothesis import strategies as st

from xdscore.client_groups import ClientGroup, GroupIndex, Trust
from xdscore.environment_choice import ClientFacts, Selector

TEXTS = st.one_of(st.text(alphabet="ab", max_size=4), st.sampled_from(["xdstp://a/t/n?b=1&a=1", "xdstp://a/t/n"]))
PATTERNS = st.none() | st.lists(TEXTS, min_size=1, max_size=3).map("*".join)
MATCHERS = st.builds(
    Selector,
    identity=PATTERNS,
    node_id=PATTERNS,
    node_cluster=PATTERNS,
    metadata=st.dictionaries(st.just("age"), TEXTS, max_size=1),
)
GROUPS = st.lists(st.tuples(st.lists(MATCHERS, max_size=3), st.sampled_from(Trust)), max_size=8).map(
    lambda drawn: [ClientGroup(str(place), tuple(matchers), trust) for place, (matchers, trust) in enumerate(drawn)]
)
CLIENTS = st.builds(
    ClientFacts,
    identity=TEXTS,
    node_id=TEXTS,
    node_cluster=TEXTS,
    metadata=st.dictionaries(st.just("age"), TEXTS, max_size=1),
)
SPELT = ClientGroup("spelt", (Selector(node_id="xdstp://a/t/n?b=1&a=1"),))


@given(groups=GROUPS, client=CLIENTS)
@example(groups=[SPELT], client=ClientFacts(node_id="xdstp://a/t/n?b=1&a=1"))
def test_of__any_groups_and_client__those_that_say_so_in_their_order(
    groups: list[ClientGroup], client: ClientFacts
) -> None:
    assert GroupIndex(groups).of(client) == [group for group in groups if group.has(client)]
