"""The one decision: who gets what, and what a client reads when it does not."""

from xdscore.access import AccessTable, Audience, Effect
from xdscore.decision import Denied, Missing, Serve, Undecided, Withheld, client_view, decide
from xdscore.resource_types import CLUSTER, LISTENER
from xdscore.snapshot import Content, RemovedName, Served, Snapshot, WithheldName, snapshot_from_entries

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
