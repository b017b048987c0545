"""Both sides of an environment, as heads to resolve and as their difference."""

from controlplane.builder.stages.fallback import REJECTED, Cause, HeldBack, resolve
from controlplane.builder.stages.sides import (
    candidate_heads,
    candidates_of,
    diff,
    stable_heads,
    with_stable,
    with_stopped,
)
from controlplane.catalog.choices import StagedState
from controlplane.catalog.heads import Head, Staged
from xdscore.snapshot import Content, RemovedName, Served, WithheldName

PAY, SHOP, CART = ("cluster", "pay"), ("route", "shop"), ("cluster", "cart")
OLD, NEW, PROVEN = Content(b"\1" * 16, "old", 1), Content(b"\2" * 16, "new", 1), Content(b"\3" * 16, "proven", 1)


def staged(head: Head, stable: Head | None, state: StagedState) -> Head:
    return Head(head.key, head.content, proven=head.proven, references=head.references, staged=Staged(stable, state))


def test_stable_heads__nothing_staged__are_the_very_same() -> None:
    heads = {PAY: Head(PAY, NEW)}

    assert stable_heads(heads, frozenset()) is heads


def test_sides__a_candidate__is_on_one_side_and_falls_back_to_what_the_other_has() -> None:
    heads = {PAY: staged(Head(PAY, NEW, proven=PROVEN), Head(PAY, OLD, proven=PROVEN), StagedState.CANDIDATE)}
    stable = resolve(stable_heads(heads, heads.keys())).entries

    own = resolve(candidate_heads(heads, heads.keys(), stable)).entries

    assert stable == {PAY: Served(OLD, PROVEN)}
    assert own == {PAY: Served(NEW, OLD)}  # R6: promoted, though nobody acknowledged it
    assert diff(stable, own) == {PAY: Served(NEW, OLD)}


def test_sides__what_waits_or_was_stopped__is_on_neither_side() -> None:
    heads = {
        PAY: staged(Head(PAY, NEW), Head(PAY, OLD), StagedState.WAITING),
        CART: staged(Head(CART, NEW), None, StagedState.STOPPED),
    }
    stable = resolve(stable_heads(heads, heads.keys())).entries

    own = resolve(candidate_heads(heads, heads.keys(), stable)).entries

    assert stable == own == {PAY: Served(OLD)}
    assert diff(stable, own) == {}
    assert candidates_of(heads, heads.keys()) == frozenset()


def test_sides__a_deletion_and_a_new_name__differ_on_the_candidate_side_alone() -> None:
    heads = {
        PAY: staged(Head(PAY, None), Head(PAY, OLD), StagedState.CANDIDATE),
        CART: staged(Head(CART, NEW), None, StagedState.CANDIDATE),
    }
    stable = resolve(stable_heads(heads, heads.keys())).entries

    own = resolve(candidate_heads(heads, heads.keys(), stable)).entries

    assert stable == {PAY: Served(OLD)}
    assert diff(stable, own) == {PAY: RemovedName(), CART: Served(NEW)}


def test_sides__references__hold_on_each_by_itself() -> None:
    # The candidate deletes what an unproven route of both sides leads to, and brings a route to what is new.
    heads = {
        PAY: staged(Head(PAY, None), Head(PAY, OLD), StagedState.CANDIDATE),
        SHOP: Head(SHOP, OLD, references=(PAY,)),
    }
    stable = resolve(stable_heads(heads, {PAY})).entries

    own = resolve(candidate_heads(heads, {PAY}, stable)).entries

    assert stable[SHOP] == Served(OLD)
    assert isinstance(own[SHOP], WithheldName)


def test_with_stable__a_candidate_that_is_held_back__has_what_the_stable_side_has() -> None:
    heads = {
        SHOP: staged(Head(SHOP, NEW, references=(PAY,)), Head(SHOP, OLD, proven=PROVEN), StagedState.CANDIDATE),
        CART: staged(Head(CART, NEW, references=(PAY,)), None, StagedState.CANDIDATE),
    }
    stable = resolve(stable_heads(heads, heads.keys())).entries
    own = resolve(candidate_heads(heads, heads.keys(), stable))

    found = with_stable(own, heads.keys(), stable)

    assert {each.key for each in found.held} == {SHOP, CART}
    assert set(diff(stable, found.entries)) == {CART}  # new: it stays withheld, so that who refers to it finds it
    assert isinstance(found.entries[CART], WithheldName)


def test_candidate__that_gives_way__claims_what_the_stable_side_claims() -> None:
    before = Head(SHOP, OLD, proven=PROVEN, claims=("domain a",), proven_claims=("domain b",))
    heads = {SHOP: staged(Head(SHOP, NEW), before, StagedState.CANDIDATE)}

    as_written = candidate_heads(heads, {SHOP}, {SHOP: Served(OLD, PROVEN)})
    gone_back = candidate_heads(heads, {SHOP}, {SHOP: Served(PROVEN, PROVEN)})
    nothing = candidate_heads(heads, {SHOP}, {SHOP: WithheldName("why")})

    assert as_written[SHOP].proven_claims == ("domain a",)
    assert gone_back[SHOP].proven_claims == ("domain b",)
    assert (nothing[SHOP].proven, nothing[SHOP].proven_claims) == (None, ())


def test_with_stopped__names_that_were_taken_back__are_held_back_as_rejected() -> None:
    heads = {
        PAY: staged(Head(PAY, NEW), Head(PAY, OLD), StagedState.STOPPED),
        CART: staged(Head(CART, NEW), None, StagedState.STOPPED),
        SHOP: staged(Head(SHOP, NEW), Head(SHOP, OLD), StagedState.WAITING),
    }
    resolution = resolve(stable_heads(heads, heads.keys()))

    assert with_stopped(resolution, heads, heads.keys()).held == (
        HeldBack(CART, Cause.REJECTED, REJECTED, served=False),
        HeldBack(PAY, Cause.REJECTED, REJECTED, served=True),
    )


def test_diff__a_name_that_the_candidate_side_does_not_know__is_none() -> None:
    assert diff({PAY: Served(OLD)}, {}) == {PAY: None}
