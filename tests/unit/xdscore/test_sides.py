"""Which side of an open rollout a client is on (rollouts.md R1)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xdscore.access import AccessTable, Audience, Effect
from xdscore.client_groups import ClientGroup, Trust
from xdscore.decision import Missing, Serve, client_view, decide, decide_collection
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.resource_types import CLUSTER, ENDPOINT
from xdscore.sides import RolloutTable, Side, client_digest, place_of, side_of
from xdscore.snapshot import (
    Content,
    Entry,
    EntryKey,
    RemovedName,
    Served,
    Snapshot,
    WithheldName,
    snapshot_from_entries,
    with_candidate,
)
from xdscore.xdstp import glob_of

NODE = ClientFacts(node_id="node-1")
DIGESTS = st.text("0123456789abcdef", min_size=32, max_size=32)
SELECTORS = st.builds(
    Selector,
    identity=st.none() | st.text(min_size=1, max_size=8),
    node_id=st.none() | st.text(min_size=1, max_size=8),
    metadata=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)
GROUPS = st.builds(
    ClientGroup,
    key=st.text(max_size=8),
    matchers=st.lists(SELECTORS, max_size=2).map(tuple),
    trust=st.sampled_from(Trust),
)
TABLES = st.builds(
    RolloutTable,
    id=st.text(min_size=1, max_size=24),
    step=st.integers(0, 20),
    picks=st.frozensets(DIGESTS, max_size=4),
    groups=st.lists(GROUPS, max_size=2, unique_by=lambda group: group.key).map(tuple),
    permille=st.integers(0, 1000),
    seed=st.text(st.characters(max_codepoint=127), min_size=1, max_size=32),
)
CLIENTS = st.builds(ClientFacts, identity=st.text(max_size=12), node_id=st.text(max_size=12))


def table(
    *, picks: frozenset[str] = frozenset(), groups: tuple[ClientGroup, ...] = (), permille: int = 0, seed: str = "seed"
) -> RolloutTable:
    return RolloutTable("r1", 0, picks, groups, permille, seed)


def test_side_of__no_rollout__is_the_stable_one() -> None:
    assert side_of(None, "prod", NODE) is Side.STABLE


def test_side_of__a_pick__is_the_candidate_side_for_this_client_alone() -> None:
    picked = table(picks=frozenset({client_digest("prod", NODE)}))

    assert side_of(picked, "prod", NODE) is Side.CANDIDATE
    assert side_of(picked, "prod", ClientFacts(node_id="node-2")) is Side.STABLE
    assert side_of(picked, "prod", ClientFacts(identity="spiffe://a", node_id="node-1")) is Side.STABLE
    assert side_of(picked, "stage", NODE) is Side.STABLE


def test_side_of__a_group__is_the_candidate_side_for_its_members() -> None:
    canaries = ClientGroup("canaries", (Selector(node_id="canary-*"),))

    assert side_of(table(groups=(canaries,)), "prod", ClientFacts(node_id="canary-7")) is Side.CANDIDATE
    assert side_of(table(groups=(canaries,)), "prod", NODE) is Side.STABLE


def test_side_of__a_verified_group__never_has_a_client_that_proved_nothing() -> None:
    proven = ClientGroup("proven", (Selector(node_id="node-*"),), Trust.VERIFIED)

    assert side_of(table(groups=(proven,)), "prod", NODE) is Side.STABLE


@given(TABLES, CLIENTS)
def test_side_of__a_table_that_was_stored_and_read__says_the_same(rollout: RolloutTable, client: ClientFacts) -> None:
    read = RolloutTable.from_json(json.loads(json.dumps(rollout.as_json())))

    assert read == rollout
    assert side_of(read, "prod", client) is side_of(rollout, "prod", client)


@given(st.integers(0, 1000), st.integers(0, 1000), CLIENTS)
def test_side_of__permille_grows__clients_only_join(some: int, more: int, client: ClientFacts) -> None:
    some, more = sorted((some, more))

    if side_of(table(permille=some), "prod", client) is Side.CANDIDATE:
        assert side_of(table(permille=more), "prod", client) is Side.CANDIDATE


@given(CLIENTS)
def test_side_of__permille_at_its_ends__is_nobody_and_everybody(client: ClientFacts) -> None:
    assert side_of(table(permille=0), "prod", client) is Side.STABLE
    assert side_of(table(permille=1000), "prod", client) is Side.CANDIDATE


@given(CLIENTS)
def test_side_of__permille_of_a_clients_place__begins_just_behind_it(client: ClientFacts) -> None:
    place = place_of("seed", client_digest("prod", client))

    assert side_of(table(permille=place), "prod", client) is Side.STABLE
    assert side_of(table(permille=place + 1), "prod", client) is Side.CANDIDATE


def test_side_of__a_tenth_of_many_clients__is_about_a_tenth_and_others_with_another_seed() -> None:
    clients = [ClientFacts(node_id=f"node-{number}") for number in range(5_000)]

    one, other = (
        {c.node_id for c in clients if side_of(table(permille=100, seed=seed), "prod", c) is Side.CANDIDATE}
        for seed in ("one", "other")
    )

    # Four standard deviations of a draw of 5,000.
    assert 415 < len(one) < 585
    assert len(one & other) < 100


def test_client_digest__parts_that_run_together__are_told_apart() -> None:
    digests = {
        client_digest("prod", ClientFacts(identity="ab", node_id="c")),
        client_digest("prod", ClientFacts(identity="a", node_id="bc")),
        client_digest("prod", ClientFacts(identity="", node_id="abc")),
        client_digest("proda", ClientFacts(identity="b", node_id="c")),
        client_digest("prod", ClientFacts(identity="a", node_id="\ud800")),
    }

    assert len(digests) == 5


def test_client_digest_and_place__never_change__so_that_replicas_of_two_versions_agree() -> None:
    digest = client_digest("prod", ClientFacts(identity="spiffe://shop/web", node_id="web-1"))

    assert digest == "923b6d1cda7889807eda6b96ddf503a5"
    assert place_of("seed", digest) == 869


@pytest.mark.parametrize(
    "broken",
    [
        {"permille": 1001},
        {"permille": True},
        {"step": -1},
        {"id": ""},
        {"seed": ""},
        {"seed": "s" * 65},
        {"picks": ["node-1"]},
        {"picks": [7]},
        {"groups": [{"key": "a", "trust": "declared"}]},
        {"groups": [{"key": "a", "trust": "declared", "matchers": [{"nodeid": "x"}]}]},
        {"groups": [{"key": "a", "trust": "declared", "matchers": [{"node_id": 7}]}]},
        {"groups": [{"key": "a", "trust": "declared", "matchers": [], "more": 1}]},
        {"groups": [{"key": "a", "trust": "declared", "matchers": []}] * 2},
        {"extra": 1},
    ],
)
def test_from_json__anything_else_than_a_table__is_refused(broken: dict[str, object]) -> None:
    tree = table().as_json()
    assert RolloutTable.from_json(tree) == table()

    with pytest.raises(ValueError, match=r"rollout|group|selector"):
        RolloutTable.from_json({**tree, **broken})


# --- the sides of a snapshot

STABLE, CANDIDATE = Audience("prod"), Audience("prod", side=Side.CANDIDATE)


def content(version: str) -> Content:
    return Content(version.encode(), version, 1)


def snapshot(entries: dict[EntryKey, Entry]) -> Snapshot:
    return snapshot_from_entries(
        environment="prod", lineage="l", epoch=1, access=AccessTable(Effect.ALLOW), entries=entries.items()
    )


def opened(entries: dict[EntryKey, Entry], diff: dict[EntryKey, Entry | None]) -> Snapshot:
    return with_candidate(snapshot(entries), table(picks=frozenset({client_digest("prod", NODE)})), diff)


def test_decide__a_changed_name__each_side_gets_its_own_content() -> None:
    both = opened({("cluster", "a"): Served(content("1"))}, {("cluster", "a"): Served(content("2"), content("1"))})

    assert decide(STABLE, CLUSTER, "a", both) == Serve(content("1"), None)
    assert decide(CANDIDATE, CLUSTER, "a", both) == Serve(content("2"), content("1"))
    assert client_view(CANDIDATE, CLUSTER, both)["a"].content == content("2")
    assert client_view(STABLE, CLUSTER, both)["a"].content == content("1")


def test_decide__a_staged_deletion__is_there_for_the_stable_side_and_gone_for_the_other() -> None:
    both = opened({("cluster", "a"): Served(content("1"))}, {("cluster", "a"): RemovedName()})

    assert decide(STABLE, CLUSTER, "a", both) == Serve(content("1"), None)
    assert decide(CANDIDATE, CLUSTER, "a", both) == Missing(removed=True)


def test_decide__a_new_name__is_told_to_the_stable_side_as_before() -> None:
    both = opened({}, {("cluster", "a"): Served(content("1"))})

    assert decide(STABLE, CLUSTER, "a", both) == decide(STABLE, CLUSTER, "a", snapshot({}))
    assert decide(CANDIDATE, CLUSTER, "a", both) == Serve(content("1"), None)


def test_decide__a_name_that_only_the_stable_side_knows_as_removed__is_missing_on_both() -> None:
    both = opened({("cluster", "a"): RemovedName()}, {("cluster", "a"): None})

    assert decide(STABLE, CLUSTER, "a", both) == Missing(removed=True)
    assert decide(CANDIDATE, CLUSTER, "a", both) == Missing(removed=False)


def test_decide_collection__a_member_of_the_candidate__is_a_member_for_its_side_alone() -> None:
    name, glob = (
        "xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/shop/one",
        glob_of("xdstp://a/envoy.config.endpoint.v3.ClusterLoadAssignment/shop/*"),
    )
    assert glob is not None
    both = opened({}, {("endpoint", name): Served(content("1"))})

    assert decide_collection(STABLE, ENDPOINT, glob, both) == Missing()
    assert decide_collection(CANDIDATE, ENDPOINT, glob, both).served == (name,)  # type: ignore[union-attr]


def test_audience__a_client_on_the_candidate_side__has_the_kind_if_its_side_withholds_from_that() -> None:
    kind = str(NODE.kind)
    both = opened(
        {("cluster", "a"): Served(content("1"))},
        {("cluster", "a"): WithheldName("refused", content("2"), kinds=(kind,))},
    )

    assert both.audience(NODE) == Audience("prod", kind=kind, side=Side.CANDIDATE)
    assert both.audience(ClientFacts(node_id="node-2")) == Audience("prod")
    assert both.audience(NODE, client_digest("prod", NODE)) == both.audience(NODE)


def test_with_candidate__types_without_a_difference__are_the_stable_sides_own() -> None:
    both = opened({("cluster", "a"): Served(content("1"))}, {("cluster", "a"): None, ("shape of later", "b"): None})

    assert both.candidate is not None
    assert both.candidate.types["endpoint"] is both.types["endpoint"]
    assert both.candidate.unknown == {"shape of later"}
    assert not both.unknown
