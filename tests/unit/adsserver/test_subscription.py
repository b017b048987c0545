"""Whether a SotW request changes a subscription is found without making another one."""

from hypothesis import given
from hypothesis import strategies as st

from adsserver.engine.subscription import Subscription, is_listed, listed
from xdscore.resource_types import CLUSTER, ENDPOINT, LISTENER, ResourceType

NAMES = st.lists(st.sampled_from(["*", "", "a", "b", "xdstp://x/envoy.config.cluster.v3.Cluster/c/*"]), max_size=3)


@given(st.sampled_from([LISTENER, CLUSTER, ENDPOINT]), st.lists(NAMES, max_size=3), NAMES)
def test_is_listed__after_any_requests__says_whether_the_next_one_changes_anything(
    kind: ResourceType, before: list[list[str]], names: list[str]
) -> None:
    current = Subscription()
    for each in before:
        current = listed(kind, current, tuple(each))

    assert is_listed(kind, current, tuple(names)) == (listed(kind, current, tuple(names)) == current)
