"""Claims: one address, one listener; what clients proved gives way to nobody, and the rest settles."""

from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.builder.stages.fallback import Cause, resolve
from controlplane.catalog.heads import Head
from xdscore.snapshot import Content, EntryKey, Served, WithheldName

PORT = "address tcp 0.0.0.0 port 80"
OTHER = "address tcp 0.0.0.0 port 81"


def content(number: int) -> Content:
    return Content(bytes([number]) * 16, str(number), 1)


def listener(name: str, revision: int, claim: str, *, proven: Content | None = None, proven_claim: str = "") -> Head:
    return Head(
        ("listener", name),
        content(revision),
        proven=proven,
        revision=revision,
        claims=(claim,),
        proven_claims=(proven_claim,) if proven_claim else (),
    )


def resolved(*heads: Head) -> dict[EntryKey, object]:
    return dict(resolve({head.key: head for head in heads}).entries)


def test_resolve__two_new_listeners_on_one_address__the_older_stays_and_the_newer_says_why() -> None:
    first, second = listener("b", 1, PORT), listener("a", 2, PORT)

    resolution = resolve({head.key: head for head in (second, first)})

    assert resolution.entries[first.key] == Served(content(1))
    assert resolution.entries[second.key] == WithheldName("another Listener has its address already")
    assert [(each.key, each.cause) for each in resolution.held] == [(second.key, Cause.CLAIMED)]
    assert resolution.conflicts[second.key] == ((PORT, first.key),)


def test_resolve__proven_and_newer__stays_before_an_older_unproven_one() -> None:
    older = listener("old", 1, PORT)
    proven = listener("proven", 2, PORT, proven=content(2), proven_claim=PORT)

    entries = resolved(older, proven)

    assert entries[proven.key] == Served(content(2), content(2))
    assert isinstance(entries[older.key], WithheldName)


def test_resolve__both_proven__both_stay_and_it_is_told() -> None:
    heads = [
        listener(name, number, PORT, proven=content(number), proven_claim=PORT) for number, name in enumerate("ab", 1)
    ]

    resolution = resolve({head.key: head for head in heads})

    assert resolution.held == ()
    assert resolution.shared == {heads[1].key: ((PORT, heads[0].key),)}


def test_resolve__moved_back_into_the_way_of_another__that_one_moves_too() -> None:
    """D12: b took a's old address; a's new one is taken, so a goes back to the old one, and b, new, has to yield."""
    holder = listener("holder", 1, OTHER, proven=content(1), proven_claim=OTHER)
    a = listener("a", 3, OTHER, proven=content(9), proven_claim=PORT)
    b = listener("b", 4, PORT)

    entries = resolved(holder, a, b)

    assert entries[a.key] == Served(content(9), content(9))
    assert isinstance(entries[b.key], WithheldName)
    assert entries[holder.key] == Served(content(1), content(1))


def test_resolve__loser_of_a_loser__is_not_moved_in_vain() -> None:
    """b loses to a only as long as a has not lost itself."""
    proven = listener("p", 5, PORT, proven=content(5), proven_claim=PORT)
    a = Head(("listener", "a"), content(1), revision=1, claims=(PORT, OTHER))
    b = listener("b", 2, OTHER)

    entries = resolved(proven, a, b)

    assert isinstance(entries[a.key], WithheldName)
    assert entries[b.key] == Served(content(2))


heads_strategy = st.lists(
    st.tuples(
        st.lists(st.sampled_from("wxyz"), max_size=2, unique=True),
        st.lists(st.sampled_from("wxyz"), max_size=2, unique=True),
        st.sampled_from(("none", "other", "same")),
        st.booleans(),
    ),
    max_size=6,
)


def built(rows: list[tuple[list[str], list[str], str, bool]]) -> list[Head]:
    heads = []
    for number, (claims, old_claims, proven, quarantined) in enumerate(rows, 1):
        old = {"none": None, "other": content(100 + number), "same": content(number)}[proven]
        heads.append(
            Head(
                ("listener", f"l{number}"),
                content(number),
                quarantined=quarantined,
                proven=old,
                revision=number,
                claims=tuple(claims),
                proven_claims=tuple(claims if proven == "same" else old_claims) if old else (),
            )
        )
    return heads


@given(heads_strategy)
def test_resolve__any_claims__end_without_two_that_share_one_unless_both_are_proven(
    rows: list[tuple[list[str], list[str], str, bool]],
) -> None:
    heads = built(rows)

    resolution = resolve({head.key: head for head in heads})

    held = {each.key for each in resolution.held}
    served = {}
    for head in heads:
        entry = resolution.entries[head.key]
        if isinstance(entry, Served):
            served[head] = head.proven_claims if head.key in held else head.claims
    for one, other in combinations(served, 2):
        if set(served[one]) & set(served[other]):
            assert all(head.key in held or head.acknowledged for head in (one, other))
    # Nothing is held that nothing speaks against.
    assert all(head.quarantined or head.key in resolution.conflicts for head in heads if head.key in held)
    assert all(head.key in held for head in heads if head.quarantined)


@given(heads_strategy.filter(lambda rows: len(rows) <= 4))
def test_resolve__any_order_of_reading__gives_the_same(rows: list[tuple[list[str], list[str], str, bool]]) -> None:
    heads = built(rows)

    outcomes = [resolve({head.key: head for head in order}) for order in permutations(heads)]

    assert all(dict(each.entries) == dict(outcomes[0].entries) for each in outcomes)
    assert all(each.held == outcomes[0].held for each in outcomes)


@pytest.mark.parametrize("claim", ["pipe /run/a.sock", "domain a.example of route r"])
def test_resolve__other_claims__are_named_in_the_reason(claim: str) -> None:
    entries = resolved(listener("a", 1, claim), listener("b", 2, claim))

    assert entries["listener", "b"] == WithheldName(f"another Listener has its {claim.split(maxsplit=1)[0]} already")
