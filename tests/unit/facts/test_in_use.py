"""What clients took and do not use yet: by what they did not ask for (truth.md H5)."""

import pytest

from controlplane.clients.in_use import Key, Unused, not_asked_for, unused_sentence
from xdscore.client_kinds import ClientFamily

SHOP, CERT, PAY = ("route", "shop"), ("secret", "cert"), ("endpoint", "pay")
NEEDS = [PAY, SHOP, ("cluster", "pay"), CERT, SHOP]


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ((), (PAY, SHOP, CERT)),
        ((SHOP, CERT), (PAY,)),
        ((SHOP, CERT, PAY), ()),
        ((("route", "other"),), (PAY, SHOP, CERT)),
    ],
)
def test_not_asked_for__what_a_user_needs__is_missing_until_it_asks(
    asked: tuple[Key, ...], missing: tuple[Key, ...]
) -> None:
    assert not_asked_for(NEEDS, asked, ClientFamily.ENVOY) == missing


def test_not_asked_for__grpc__never_asks_for_secrets_and_is_not_expected_to() -> None:
    assert not_asked_for(NEEDS, (SHOP, PAY), ClientFamily.GRPC_CORE) == ()


def test_unused_sentence__many__names_three_and_counts_the_rest() -> None:
    missing = [("endpoint", f"e{number}") for number in range(5)]

    sentence = unused_sentence(missing)

    assert (
        sentence == "Held, not in use yet: it has not asked for endpoint 'e0', endpoint 'e1', endpoint 'e2' and 2 more."
    )


@pytest.mark.parametrize(("clients", "who"), [(1, "1 client"), (12, "12 clients")])
def test_unused__of_some_clients__says_how_many_and_what_they_did_not_ask_for(clients: int, who: str) -> None:
    found = Unused("listener", "web", clients, (SHOP,))

    assert found.sentence == f"{who} took listener 'web' and did not ask for route 'shop'."
