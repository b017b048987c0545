"""What a client took and does not use yet: by what it did not ask for (truth.md H5)."""

import pytest

from controlplane.explain.unused import not_asked_for, unused_sentence
from controlplane.explain.values import Asked
from xdscore.client_kinds import ClientFamily

LISTENER = ("listener", "web")
NEEDED = {
    LISTENER: [("route", "shop"), ("cluster", "pay"), ("secret", "cert")],
    ("cluster", "pay"): [("endpoint", "pay")],
}


@pytest.mark.parametrize(
    ("asked", "missing"),
    [
        ({}, {LISTENER: (("route", "shop"), ("secret", "cert")), ("cluster", "pay"): (("endpoint", "pay"),)}),
        (
            {"route": [Asked(("other", "shop"), False)], "secret": [Asked(("cert",), False)]},
            {("cluster", "pay"): (("endpoint", "pay"),)},
        ),
        (
            {"endpoint": [Asked((), True)]},
            {LISTENER: (("route", "shop"), ("secret", "cert"))},
        ),
    ],
)
def test_not_asked_for__what_a_user_needs__is_missing_until_some_subscription_covers_it(
    asked: dict[str, list[Asked]], missing: object
) -> None:
    assert not_asked_for(NEEDED, asked, ClientFamily.ENVOY) == missing


def test_not_asked_for__grpc__never_asks_for_secrets_and_is_not_expected_to() -> None:
    found = not_asked_for(NEEDED, {"route": [Asked(("shop",), False)]}, ClientFamily.GRPC_CORE)

    assert LISTENER not in found


def test_unused_sentence__many__names_three_and_counts_the_rest() -> None:
    missing = [("endpoint", f"e{number}") for number in range(5)]

    sentence = unused_sentence(missing)

    assert sentence.startswith("It has it and does not use it yet: it has not asked for endpoint 'e0',")
    assert sentence.endswith("endpoint 'e2' and 2 more.")
