"""What a client says of itself, held against what Parley believes: each way in which they can differ, and agree."""

import pytest

from controlplane.clients.comparing import (
    SENTENCES,
    Belief,
    Believed,
    Comparison,
    DifferenceKind,
    compare,
    with_own_versions,
)
from xdscore.said import NO_HOSTS, Said, SaidState

KEY = ("cluster", "pay")
R1, R2 = "1" * 16, "2" * 16
HAS = Believed(Belief.HAS, R2)
LACKS = Believed(Belief.LACKS)
REFUSED = Believed(Belief.REFUSED, R2)
AWAY = Believed(Belief.HAS, R2, away=True)


def said(state: SaidState = SaidState.ACKED, version: str = R2, *, held: bool = True, **more: str) -> Said:
    return Said("cluster", "pay", state, held=held, version=version, **more)


def nothing(state: SaidState, error: str = "") -> Said:
    return said(state, "", held=False, error=error)


def compared(believed: Believed, *entries: Said) -> Comparison:
    return compare(entries, {KEY: believed}, {"cluster"})


@pytest.mark.parametrize(
    ("believed", "entries"),
    [
        (HAS, (said(),)),
        (HAS, (said(), said(SaidState.DRAINING, R1))),  # Envoy replaced a listener
        (LACKS, ()),
        (LACKS, (nothing(SaidState.RECEIVED_ERROR, "NOT_FOUND"),)),
        (LACKS, (nothing(SaidState.DOES_NOT_EXIST),)),
        (LACKS, (said(SaidState.DRAINING),)),
        (LACKS, (said(SaidState.STATIC),)),
        (LACKS, (said(version="", endpoints=NO_HOSTS),)),  # Envoy shows these for endpoints that never came
        (REFUSED, (said(SaidState.NACKED, R1),)),
        (REFUSED, (said(version=R1),)),
        (REFUSED, ()),
        (AWAY, (said(),)),
    ],
)
def test_compare__as_parley_believes__agrees(believed: Believed, entries: tuple[Said, ...]) -> None:
    found = compared(believed, *entries)

    assert (found.differences, found.compared, found.by_presence, found.unsure) == ((), 1, 0, frozenset())


@pytest.mark.parametrize(
    ("believed", "entries", "kind", "differs"),
    [
        (HAS, (said(version=R1),), DifferenceKind.OTHER_CONTENT, 0),
        (HAS, (said(), said(version=R1)), DifferenceKind.OTHER_CONTENT, 1),  # two channels of one process
        (HAS, (), DifferenceKind.MISSING, None),
        (HAS, (nothing(SaidState.REQUESTED),), DifferenceKind.MISSING, None),
        (HAS, (nothing(SaidState.DOES_NOT_EXIST),), DifferenceKind.MISSING, None),
        (HAS, (said(SaidState.NACKED, R1, error="no"),), DifferenceKind.REFUSES, 0),
        (HAS, (said(SaidState.NACKED, R2, error="no"),), DifferenceKind.REFUSES, 0),
        (HAS, (nothing(SaidState.NACKED, "no"),), DifferenceKind.REFUSES, 0),
        (HAS, (said(SaidState.RECEIVED_ERROR, error="no"),), DifferenceKind.IN_ERROR, 0),
        (HAS, (nothing(SaidState.TIMEOUT, "late"),), DifferenceKind.IN_ERROR, 0),
        (HAS, (said(SaidState.WARMING),), DifferenceKind.NOT_IN_USE, 0),
        (HAS, (said(version=R1), said(SaidState.WARMING)), DifferenceKind.NOT_IN_USE, 1),
        (HAS, (said(SaidState.DRAINING),), DifferenceKind.LEAVING, 0),
        (HAS, (said(SaidState.STATIC, R1),), DifferenceKind.STATIC, 0),
        (LACKS, (said(version=R1),), DifferenceKind.KEEPS, 0),
        (LACKS, (said(SaidState.RECEIVED_ERROR, R1),), DifferenceKind.KEEPS, 0),
        (REFUSED, (said(),), DifferenceKind.RUNS_REFUSED, 0),
        (AWAY, (said(version=R1),), DifferenceKind.BEHIND, 0),
        (AWAY, (), DifferenceKind.BEHIND, None),
    ],
)
def test_compare__not_as_parley_believes__says_how_and_what_it_says(
    believed: Believed, entries: tuple[Said, ...], kind: DifferenceKind, differs: int | None
) -> None:
    found = compared(believed, *entries)

    [difference] = found.differences
    assert (difference.kind, difference.believed) == (kind, believed)
    assert difference.said == (entries[differs] if differs is not None else None)


def test_compare__content_that_does_not_show__only_its_presence() -> None:
    there = compared(HAS, said(version=""))
    gone = compared(HAS)

    assert (there.differences, there.by_presence) == ((), 1)
    assert [each.kind for each in gone.differences] == [DifferenceKind.MISSING]


@pytest.mark.parametrize(("hosts", "differ"), [("abcd", False), ("other", True), (NO_HOSTS, True)])
def test_compare__endpoints__by_their_hosts(hosts: str, differ: bool) -> None:
    believed = Believed(Belief.HAS, R2, endpoints="abcd")
    entry = Said("endpoint", "pay", SaidState.ACKED, held=True, endpoints=hosts)

    found = compare([entry], {("endpoint", "pay"): believed}, {"endpoint"})

    assert bool(found.differences) is differ
    assert found.by_presence == 0


def test_compare__unsure_unknown_and_types_that_were_not_read__are_not_compared() -> None:
    unsure = ("cluster", "moved")
    believed = {unsure: Believed(Belief.UNSURE), ("route", "r"): HAS}

    found = compare([said(), Said("cluster", "moved", SaidState.ACKED, held=True)], believed, {"cluster"})

    assert (found.differences, found.compared, found.unsure) == ((), 0, frozenset({unsure}))


def test_compare__xdstp_name_that_envoy_calls_by_the_name_inside__is_known_by_its_content() -> None:
    name = ("cluster", "xdstp://td/envoy.config.cluster.v3.Cluster/pay?a=1&b=2")
    turned = Said("cluster", "xdstp://td/envoy.config.cluster.v3.Cluster/pay?b=2&a=1", SaidState.ACKED, True, R2)

    inside = compare([said()], {name: HAS, KEY: LACKS}, {"cluster"})
    spelled_otherwise = compare([turned], {name: HAS}, {"cluster"})

    assert (inside.differences, inside.compared) == ((), 2)
    assert (spelled_otherwise.differences, spelled_otherwise.compared) == ((), 1)


def test_own_versions__delta__stand_in_for_content_that_does_not_show() -> None:
    hidden = said(version="", version_info=R1)

    assert with_own_versions(hidden).version == R1
    assert with_own_versions(said(version=R2, version_info=R1)).version == R2
    assert with_own_versions(said(version="", version_info=R1, endpoints="abcd")).version == ""
    assert [each.kind for each in compared(HAS, with_own_versions(hidden)).differences] == [
        DifferenceKind.OTHER_CONTENT
    ]


def test_sentences__every_kind__has_one() -> None:
    assert SENTENCES.keys() == set(DifferenceKind)
