"""Who is asked: covers, steps and kinds."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.catalog.rollout_settings import Measure, RolloutStep
from controlplane.rollouts.cohort import (
    MAX_KINDS,
    MAX_PILOTS,
    OTHER,
    PILOT,
    Member,
    StepSize,
    kind_word,
    kinds_told_apart,
    meant,
    second,
    size_of,
    step_cohort,
    uncovered,
)
from controlplane.rollouts.values import Why
from tests.unit.rollouts.facts_made import ENVOY, GO, PAY, SHOP
from xdscore.client_kinds import UNKNOWN_KIND, ClientFamily, ClientKind
from xdscore.environment_choice import ClientFacts
from xdscore.sides import client_digest, place_of

SEED = "seed"


def member(
    name: str,
    *asks: tuple[str, str],
    kind: str = ENVOY,
    identity: str = "",
    wildcards: tuple[tuple[str, str], ...] = (),
    groups: tuple[str, ...] = (),
) -> Member:
    digest = client_digest("default", ClientFacts(identity, name))
    return Member(name, name, digest, identity, kind, frozenset(asks), frozenset(wildcards), frozenset(groups))


def chosen(size: StepSize, *fleet: Member, inside: tuple[Member, ...] = (), prefer: str | None = None) -> list[str]:
    digests = {each.digest for each in inside}
    cohort = step_cohort(size, fleet, inside=digests, seed=SEED, prefer_group=prefer)
    return [pick.member.client for pick in cohort.picks]


def test_pilot__clients_ask_for_different_names__few_clients_cover_all() -> None:
    everything = member("all", PAY, SHOP)
    fleet = [member(f"pay-{number}", PAY) for number in range(50)] + [everything, member("shop", SHOP)]

    assert chosen(PILOT, *fleet) == ["all"]


def test_pilot__several_kinds_ask_for_it__one_of_each_is_asked() -> None:
    fleet = [member(f"{kind}-{number}", PAY, kind=kind) for kind in (ENVOY, GO) for number in range(9)]

    assert sorted(name.rpartition("-")[0] for name in chosen(PILOT, *fleet)) == [ENVOY, GO]


def test_pilot__nobody_asks_for_what_changed__asks_nobody() -> None:
    assert chosen(PILOT, member("a"), member("b")) == []


def test_pilot__wildcards_of_two_audiences__one_of_each_is_asked() -> None:
    fleet = [member(f"{who}-{number}", PAY, wildcards=(("cluster", who),)) for who in "ab" for number in range(3)]

    assert sorted(name[0] for name in chosen(PILOT, *fleet)) == ["a", "b"]


def test_pilot__a_group_is_preferred__its_members_come_first_even_if_more_are_needed() -> None:
    fleet = [member("all", PAY, SHOP), member("p", PAY, groups=("canary",)), member("s", SHOP, groups=("canary",))]

    assert sorted(chosen(PILOT, *fleet, prefer="canary")) == ["p", "s"]


def test_pilot__everybody_asks_for_something_else__asks_at_most_so_many_and_tells_who_is_left_out() -> None:
    fleet = [member(str(number), ("cluster", str(number))) for number in range(MAX_PILOTS + 1)]

    cohort = step_cohort(PILOT, fleet, inside=(), seed=SEED)

    assert len(cohort.picks) == MAX_PILOTS
    assert cohort.uncovered == (ENVOY,)


def test_kinds__a_number_of_each__prefers_who_asks_and_identities_that_differ() -> None:
    fleet = [member(f"same-{number}", PAY, identity="one") for number in range(5)]
    fleet += [member("other", PAY, identity="two"), member("idle", identity="three"), member("go", kind=GO)]

    picked = chosen(StepSize(kinds=2), *fleet)

    assert "go" in picked
    assert "other" in picked
    assert "idle" not in picked
    assert len(picked) == 3


def test_clients__a_number_of_them__covers_first_and_fills_up() -> None:
    fleet = [member(f"a{number}", PAY) for number in range(9)] + [member("go", PAY, kind=GO), member("idle")]

    picked = chosen(StepSize(clients=4), *fleet)

    assert len(picked) == 4
    assert "go" in picked
    assert "idle" not in picked


def test_percent__a_small_fleet__has_at_least_as_many_as_it_means() -> None:
    fleet = [member(f"a{number}", *([PAY] if number == 3 else [])) for number in range(20)]
    cohort = step_cohort(StepSize(permille=10), fleet, inside=(), seed=SEED)

    lucky = [each for each in fleet if place_of(SEED, each.digest) < 10]
    assert len(lucky) + len(cohort.picks) == 1
    assert cohort.permille == 10
    assert lucky or cohort.picks[0].member.client == "a3"


def test_groups__a_step_names_one__its_members_are_not_chosen_besides() -> None:
    fleet = [member("a", PAY, groups=("canary",)), member("b", PAY)]

    assert chosen(StepSize(clients=1, groups=("canary",)), *fleet) == []


def test_meant__of_different_units__never_falls() -> None:
    fleet = [member(f"a{number}") for number in range(100)]
    sizes = StepSize(clients=30), StepSize(kinds=1), StepSize(permille=100), StepSize(permille=1000)

    assert meant(sizes, fleet) == (30, 30, 30, 100)


@pytest.mark.parametrize(
    ("step", "size"),
    [
        (RolloutStep(Measure.KINDS, 1), "one client of each kind"),
        (RolloutStep(Measure.CLIENTS, 5), "5 clients"),
        (RolloutStep(Measure.PERCENT, 5, groups=("canary",)), "0.5 % of the clients, and the members of 'canary'"),
    ],
)
def test_size_of__a_step_of_the_settings__says_whom_it_means(step: RolloutStep, size: str) -> None:
    assert str(size_of(step)) == size


def test_kinds_told_apart__many_are_invented__ranks_by_identities_then_by_clients() -> None:
    invented = [(ClientKind(ClientFamily.ENVOY, f"9.{number}"), "evil") for number in range(100)] * 3
    real = [(ClientKind(ClientFamily.GRPC_GO, "1.66"), identity) for identity in ("one", "two")]

    apart = kinds_told_apart([*invented, *real, (UNKNOWN_KIND, "three")])

    assert len(apart) == MAX_KINDS
    assert ClientKind(ClientFamily.GRPC_GO, "1.66") in apart
    assert kind_word(UNKNOWN_KIND, apart) == OTHER
    assert kind_word(ClientKind(ClientFamily.ENVOY, "9.99"), apart) == OTHER
    assert kind_word(ClientKind(ClientFamily.GRPC_GO, "1.66"), apart) == GO


def test_second__other_identities_ask__comes_from_one_of_them() -> None:
    fleet = [member(f"a{number}", PAY, identity="one") for number in range(9)] + [member("b", PAY, identity="two")]

    found = second(ENVOY, PAY, fleet, inside={fleet[0].digest}, parties={"one"}, seed=SEED)

    assert found is not None
    assert found.client == "b"
    assert second(GO, PAY, fleet, inside=(), parties=(), seed=SEED) is None


FLEETS = st.lists(
    st.builds(
        lambda number, asks, kind, identity, groups: member(
            f"n{number}", *asks, kind=kind, identity=identity, groups=tuple(groups)
        ),
        st.integers(0, 10_000),
        st.frozensets(st.sampled_from((PAY, SHOP, ("route", "r")))),
        st.sampled_from((ENVOY, GO, OTHER)),
        st.sampled_from(("", "one", "two", "three")),
        st.frozensets(st.sampled_from(("canary", "far")), max_size=1),
    ),
    unique_by=lambda each: each.client,
    max_size=40,
)
SIZES = st.one_of(
    st.just(PILOT),
    st.builds(StepSize, kinds=st.integers(1, 4)),
    st.builds(StepSize, clients=st.integers(1, 50), groups=st.just(("far",))),
    st.builds(StepSize, permille=st.integers(1, 1000)),
)


@given(FLEETS, SIZES, st.randoms())
def test_step_cohort__the_fleet_in_another_order__chooses_the_same(
    fleet: list[Member], size: StepSize, luck: object
) -> None:
    others = list(fleet)
    luck.shuffle(others)  # type: ignore[attr-defined]  # a Random

    one, two = (step_cohort(size, some, inside=(), seed=SEED, prefer_group="canary") for some in (fleet, others))

    assert {pick.member.client for pick in one.picks} == {pick.member.client for pick in two.picks}


@given(FLEETS)
def test_pilot__any_fleet__covers_every_kind_for_every_name_that_it_asks_for(fleet: list[Member]) -> None:
    cohort = step_cohort(PILOT, fleet, inside=(), seed=SEED)

    assert uncovered(fleet, [pick.member for pick in cohort.picks]) == cohort.uncovered == ()
    assert all(pick.why is Why.PILOT and pick.member.asks for pick in cohort.picks)


@given(FLEETS, st.lists(SIZES, min_size=1, max_size=5))
def test_step_cohort__one_step_after_the_other__nobody_is_chosen_twice_and_all_are_enough(
    fleet: list[Member], sizes: list[StepSize]
) -> None:
    inside: set[str] = set()
    permille = 0
    for size in sizes:
        cohort = step_cohort(size, fleet, inside=inside, seed=SEED)
        picked = [pick.member.digest for pick in cohort.picks]
        assert not inside & set(picked)
        assert max(Counter(picked).values(), default=0) <= 1
        permille = max(permille, cohort.permille)
        inside |= set(picked) | {each.digest for each in fleet if place_of(SEED, each.digest) < permille}
        inside |= {each.digest for each in fleet if not each.groups.isdisjoint(size.groups)}
        number = meant([size], fleet)[0]
        assert size.pilot or len(inside) >= number
    assert all(one <= other for one, other in pairwise(meant(sizes, fleet)))
