"""What a token may within the rights of whoever it belongs to: exactly what both may."""

from itertools import combinations, product

from controlplane.accounts.principal import SYSTEM, Principal, Role, Scope, scopes_within

PLACES = ("a", "b", None)
SCOPES = tuple(Scope(role, place) for role in Role for place in PLACES)


def of(*scopes: Scope) -> Principal:
    return Principal("somebody", scopes, SYSTEM.id)


def test_scopes_within__any_scope_and_any_two_of_the_owner__may_exactly_what_both_may() -> None:
    for wanted, held in product(SCOPES, combinations(SCOPES, 2)):
        token, owner = of(wanted), of(*held)

        cut = of(*scopes_within([wanted], owner))

        for role, place in product(Role, PLACES):
            both = token.may(role, place) and owner.may(role, place)
            assert cut.may(role, place) == both, (wanted, held, role, place)


def test_scopes_within__owner_without_rights__nothing() -> None:
    assert scopes_within(SCOPES, of()) == ()
