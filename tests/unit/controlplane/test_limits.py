"""Roles with limits: what they reach, what is no limit, and that nobody gets more than both of two rights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.accounts.principal import EVERYTHING, SYSTEM, Principal, Role, Scope, scopes_within
from controlplane.common.limits import LIMITED_ROLES, Limit, limit_of, limit_problem, limit_read, limit_stored

OWNERS, WORDS, NAMES = ("", "pay", "shop"), ("cluster", "route", "secret"), ("pay", "pay-eu", "repay", "shop")
PLACES = ("prod", "test")

patterns = st.sampled_from(("pay", "pay*", "*pay", "p*y", "shop*"))
limits = st.builds(
    Limit,
    st.none() | st.sampled_from(("pay", "shop")),
    st.none() | st.lists(st.sampled_from(WORDS), max_size=2).map(tuple),
    st.none() | st.lists(patterns, max_size=2).map(tuple),
)
scopes = st.builds(
    Scope,
    st.sampled_from(Role),
    st.sampled_from((*PLACES, None)),
    st.just(()) | st.lists(limits, max_size=2).map(tuple),
)
several = st.lists(scopes, max_size=4).map(tuple)


def of(held: tuple[Scope, ...]) -> Principal:
    return Principal("somebody", held, SYSTEM.id)


@given(several, several)
def test_scopes_within__any_two__exactly_what_both_may_on_each_resource(
    wanted: tuple[Scope, ...], held: tuple[Scope, ...]
) -> None:
    token, owner = of(wanted), of(held)

    cut = of(scopes_within(wanted, owner))

    for role in Role:
        for place in PLACES:
            ours, theirs, both = (each.allowed(role, place) for each in (token, owner, cut))
            assert cut.may(role, place) == (token.may(role, place) and owner.may(role, place))
            for word in WORDS:
                for name in NAMES:
                    for whose in OWNERS:
                        may = ours.takes(word, name, whose) and theirs.takes(word, name, whose)
                        assert both.takes(word, name, whose) == may, (role, place, word, name, whose)


@given(several, st.sampled_from(Role), st.sampled_from(PLACES))
def test_may__knows_nothing_of_limits__so_no_limited_role_counts(
    held: tuple[Scope, ...], role: Role, place: str
) -> None:
    unlimited = tuple(scope for scope in held if not scope.limits)

    assert of(held).may(role, place) == of(unlimited).may(role, place)
    assert of(held).allowed(role, place).everything == of(held).may(role, place)


@given(scopes, st.sampled_from(PLACES))
def test_limited_role__of_any_kind__reaches_reading_and_writing_of_resources_alone(scope: Scope, place: str) -> None:
    limited = of((Scope(scope.role, scope.environment, (Limit(owner="pay"), *scope.limits)),))

    for role in set(Role) - LIMITED_ROLES:
        assert limited.allowed(role, place).nothing


@given(several, st.sampled_from(Role), st.sampled_from(PLACES))
def test_more_roles__never_less(held: tuple[Scope, ...], role: Role, place: str) -> None:
    before, after = of(held[1:]).allowed(role, place), of(held).allowed(role, place)

    for word in WORDS:
        for name in NAMES:
            for whose in OWNERS:
                assert after.takes(word, name, whose) or not before.takes(word, name, whose)


@given(limits)
def test_limit__stored_and_read__the_same(limit: Limit) -> None:
    assert limit_read(limit.text) == limit
    assert limit.text.isascii()


def test_limit__that_takes_nothing__is_not_read_as_none() -> None:
    stored = limit_stored({"role": "editor", "environment": "prod", "names": []})

    assert stored == Limit(names=())
    assert stored is not None
    assert not stored.takes("cluster", "pay", "")


def test_no_limit__everything() -> None:
    assert limit_of() is None
    assert limit_read("") is None
    assert EVERYTHING.takes("secret", "x", "y")
    assert of(()).allowed(Role.VIEWER, "prod").nothing


@pytest.mark.parametrize(
    ("given_parts", "words"),
    [
        ({"types": []}, "Types are"),
        ({"types": ["clusters"]}, "Types are"),
        ({"names": []}, "1 to 20"),
        ({"names": ["n"] * 1 + [f"n{i}" for i in range(20)]}, "1 to 20"),
        ({"names": ["*"]}, "every name"),
        ({"names": ["a*b*"]}, "one star"),
        ({"names": ["a\nb"]}, "control character"),
        ({"names": [""]}, "is empty"),
        ({"owner": ""}, "An owner"),
        ({"owner": "a\nb"}, "An owner"),
        ({"names": ["ä" * 300]}, "at most 1000"),
    ],
)
def test_limit_of__what_could_be_a_mistake__says_what_is_wrong(given_parts: dict[str, list[str]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        limit_of(**given_parts)  # type: ignore[arg-type]


def test_limit_of__several_mistakes__all_at_once() -> None:
    with pytest.raises(ValueError, match=r"An owner.*Types are.*one star"):
        limit_of(owner="", types=["x"], names=["a*b*c"])


def test_limit_problem__role_about_a_whole_environment__says_which_can() -> None:
    limit = Limit(owner="pay")

    assert {role for role in Role if not limit_problem(role, limit)} == LIMITED_ROLES
    assert "editor and viewer" in limit_problem(Role.ADMIN, limit)
    assert not limit_problem(Role.ADMIN, None)


def test_words__for_people__say_all_parts() -> None:
    limit = limit_of(owner="pay", types=["route", "cluster"], names=["pay*"])
    assert limit is not None

    assert Scope(Role.EDITOR, "prod", (limit,)).words == "editor in prod, only cluster, route 'pay*' of owner 'pay'"
    assert Scope(Role.EDITOR, None).words == "editor in all environments"
