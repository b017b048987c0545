"""The one decision: who gets what, and what a client reads when it does not."""

import json
import zlib

import pytest

from xdscore.access import AccessTable, Audience, Effect, Rule
from xdscore.chunks import decode_chunk, encode_chunk
from xdscore.decision import (
    Collection,
    Denied,
    Missing,
    Serve,
    Undecided,
    Withheld,
    client_view,
    decide,
    decide_collection,
)
from xdscore.resource_types import CLUSTER, LISTENER
from xdscore.snapshot import Content, RemovedName, Served, Snapshot, WithheldName, snapshot_from_entries
from xdscore.xdstp import glob_of

AUDIENCE = Audience("prod")
PAY = Served(Content(b"\1" * 16, "v1", 10), proven=Content(b"\2" * 16, "v0", 9))


def snapshot(effect: Effect = Effect.ALLOW) -> Snapshot:
    entries = (
        (("cluster", "pay"), PAY),
        (("cluster", "broken"), WithheldName("rejected by clients")),
        (("cluster", "gone"), RemovedName()),
    )
    return snapshot_from_entries(environment="prod", lineage="l", epoch=1, access=AccessTable(effect), entries=entries)


def test_decide__published_name__serves_it_with_its_fallback() -> None:
    assert decide(AUDIENCE, CLUSTER, "pay", snapshot()) == Serve(PAY.content, PAY.proven)


def test_decide__name_of_another_type__is_missing() -> None:
    assert decide(AUDIENCE, LISTENER, "pay", snapshot()) == Missing()


def test_decide__withheld_name__says_why() -> None:
    assert decide(AUDIENCE, CLUSTER, "broken", snapshot()) == Withheld("rejected by clients")


def test_decide__removed_name__is_missing_and_known_to_have_been_there() -> None:
    assert decide(AUDIENCE, CLUSTER, "gone", snapshot()) == Missing(removed=True)


def test_decide__environment_denies__existing_and_absent_names_are_alike() -> None:
    denied = {decide(AUDIENCE, CLUSTER, name, snapshot(Effect.DENY)) for name in ("pay", "broken", "gone", "never")}

    assert denied == {Denied(0, "")}


def test_decide__environment_hides__existing_and_absent_names_are_alike() -> None:
    hidden = {decide(AUDIENCE, CLUSTER, name, snapshot(Effect.HIDE)) for name in ("pay", "broken", "gone", "never")}

    assert hidden == {Missing(hidden=True)}


def test_decide__no_snapshot__is_undecided() -> None:
    assert isinstance(decide(AUDIENCE, CLUSTER, "pay", None), Undecided)


def test_client_view__environment_allows__holds_what_is_served_and_shares_the_mapping() -> None:
    published = snapshot()

    assert client_view(AUDIENCE, CLUSTER, published) is published.type_state(CLUSTER).served
    assert set(client_view(AUDIENCE, CLUSTER, published)) == {"pay"}


def test_client_view__environment_denies__is_empty() -> None:
    assert client_view(AUDIENCE, CLUSTER, snapshot(Effect.DENY)) == {}


RULES = (
    Rule(4, Effect.DENY, "pay*", message="ask payments"),
    Rule(9, Effect.HIDE, "br*"),
)


def ruled(*, stored: bool) -> Snapshot:
    """A world with rules, with and without the rows that the builder stores."""
    table = AccessTable(Effect.ALLOW, rules=RULES)
    served = {
        name: Served(PAY.content, None, table.row(CLUSTER, name) if stored else None)
        for name in ("pay", "web", "bread")
    }
    entries = [(("cluster", name), entry) for name, entry in served.items()]
    return snapshot_from_entries(environment="prod", lineage="l", epoch=1, access=table, entries=entries)


@pytest.mark.parametrize("name", ["pay", "payroll"])
def test_decide__rule_denies__says_which_and_its_words_whether_or_not_the_name_exists(name: str) -> None:
    assert decide(AUDIENCE, CLUSTER, name, ruled(stored=True)) == Denied(4, "ask payments")


@pytest.mark.parametrize("name", ["bread", "broom"])
def test_decide__rule_hides__is_missing_and_says_which_to_operators(name: str) -> None:
    assert decide(AUDIENCE, CLUSTER, name, ruled(stored=True)) == Missing(hidden=True, rule=9)


@pytest.mark.parametrize("stored", [True, False])
def test_client_view__rules__holds_what_they_allow(stored: bool) -> None:
    assert set(client_view(AUDIENCE, CLUSTER, ruled(stored=stored))) == {"web"}


def test_client_view__rules_that_refuse_nothing_of_the_type__shares_the_mapping() -> None:
    table = AccessTable(Effect.ALLOW, rules=(Rule(1, Effect.DENY, "*", types=frozenset({"listener"})),))
    published = snapshot_from_entries(
        environment="prod", lineage="l", epoch=1, access=table, entries=[(("cluster", "pay"), PAY)]
    )

    assert client_view(AUDIENCE, CLUSTER, published) is published.type_state(CLUSTER).served


SOME = WithheldName("rejected by clients of this kind", Content(b"\3" * 16, "v2", 8), ("grpc-core 1.85",), ("mark",))
NOBODY = WithheldName("rejected by clients", Content(b"\4" * 16, "v3", 8), (), ("mark",))
MEMBER = "xdstp://shop/envoy.config.cluster.v3.Cluster/d/c"


def partly(effect: Effect = Effect.ALLOW) -> Snapshot:
    entries = ((("cluster", "some"), SOME), (("cluster", "nobody"), NOBODY), (("cluster", MEMBER), SOME))
    return snapshot_from_entries(environment="prod", lineage="l", epoch=1, access=AccessTable(effect), entries=entries)


@pytest.mark.parametrize(
    ("audience", "some", "nobody"),
    [
        (AUDIENCE, True, False),
        (Audience("prod", kind="envoy 1.40"), True, False),
        (Audience("prod", kind="grpc-core 1.85"), False, False),
        (Audience("prod", kind="grpc-core 1.85", probes=frozenset({("cluster", "some", "v2")})), True, False),
        (Audience("prod", probes=frozenset({("cluster", "nobody", "v3")})), True, True),
        # Another revision than the one that it was let try.
        (Audience("prod", probes=frozenset({("cluster", "nobody", "v2")})), True, False),
    ],
)
def test_decide__withheld_from_some__by_kind_and_by_what_is_probed_and_the_view_alike(
    audience: Audience, some: bool, nobody: bool
) -> None:
    snapshot = partly()

    found = {name: decide(audience, CLUSTER, name, snapshot) for name in ("some", "nobody", MEMBER)}

    assert isinstance(found["some"], Serve if some else Withheld)
    assert isinstance(found["nobody"], Serve if nobody else Withheld)
    served = {name for name, each in found.items() if isinstance(each, Serve)}
    assert client_view(audience, CLUSTER, snapshot).keys() == served
    glob = glob_of("xdstp://shop/envoy.config.cluster.v3.Cluster/d/*")
    assert glob is not None
    collection = decide_collection(audience, CLUSTER, glob, snapshot)
    held = isinstance(found[MEMBER], Withheld)
    assert held is (audience.kind == "grpc-core 1.85")
    assert collection == (Collection((), (MEMBER,)) if held else Collection((MEMBER,), ()))


def test_decide__withheld_from_others_and_denied__is_denied() -> None:
    snapshot = partly(Effect.DENY)

    assert decide(AUDIENCE, CLUSTER, "some", snapshot) == Denied(0, "")
    assert client_view(AUDIENCE, CLUSTER, snapshot) == {}


def test_chunk__of_partly_withheld_names__says_the_reason_to_a_process_of_the_version_before() -> None:
    entries = ((("cluster", "nobody"), NOBODY), (("cluster", "some"), SOME))

    data = encode_chunk(entries)

    assert decode_chunk(data) == entries
    # What that version reads of a withheld row: its fourth column.
    rows = json.loads(zlib.decompress(data[1:]))
    assert [(row[2], row[3]) for row in rows] == [("w", NOBODY.reason), ("w", SOME.reason)]
