"""What clients lost, in words."""

import pytest

from controlplane.catalog.guarding import Loser, Loss, LostName
from controlplane.incidents.loss_words import (
    clients_lost,
    kinds_told,
    losers_told,
    losing_family,
    loss_sentence,
    names_count,
    names_told,
)
from xdscore.client_kinds import ClientFamily

MANY = Loss(
    clients=40,
    connected=50,
    kinds={f"envoy 1.{minor}": minor for minor in range(6)} | {"grpc-java 1.80": 25},
    names=tuple(LostName("route", f"r{number}", 40) for number in range(6)),
    truncated=True,
    who=tuple(Loser(f"c{number}", f"node-{number}", "envoy 1.4") for number in range(6)),
)
ONE = Loss(1, 1, {"envoy 1.40": 1}, (LostName("listener", "pay", 1),), who=(Loser("c1", "node-1", "envoy 1.40"),))


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (ONE, ("1 of 1 connected client", "1 name", "listener 'pay' (1 client)", "node-1", "1 envoy 1.40")),
        (
            MANY,
            (
                "40 of 50 connected clients",
                "more than 6 names",
                ", ".join(f"route 'r{number}' (40 clients)" for number in range(5)) + ", …",
                "node-0, node-1, node-2, node-3, node-4, …",
                "25 grpc-java 1.80, 5 envoy 1.5, 4 envoy 1.4, 3 envoy 1.3, 2 envoy 1.2, …",
            ),
        ),
        (Loss(2, 9, doubtful=2), ("2 of 9 connected clients (2 of them perhaps)", "0 names", "", "…", "")),
    ],
)
def test_loss__in_words__counts_all_and_tells_the_first(loss: Loss, said: tuple[str, ...]) -> None:
    told = (clients_lost(loss), names_count(loss), names_told(loss), losers_told(loss), kinds_told(loss))

    assert told == said


@pytest.mark.parametrize(
    ("kinds", "family"),
    [
        ({}, ClientFamily.OTHER),
        ({"envoy 1.40": 2, "grpc-go 1.70": 1}, ClientFamily.ENVOY),
        ({"envoy 1.40": 2, "grpc-go 1.70": 1, "grpc-go ?": 2}, ClientFamily.GRPC_GO),
        ({"something new": 2, "envoy 1.40": 1}, ClientFamily.OTHER),
    ],
)
def test_losing_family__is_that_of_most_of_them(kinds: dict[str, int], family: ClientFamily) -> None:
    assert losing_family(Loss(clients=3, kinds=kinds)) is family


@pytest.mark.parametrize(("message", "said"), [("deny *", ": “deny *”"), ("", "")])
def test_loss_sentence__says_who_lost_how_much_by_whom_and_the_way_back(message: str, said: str) -> None:
    told = loss_sentence(ONE, change="0123456789", author="dana", message=message)

    wrote = f"by change 01234567 of dana{said}"
    assert told == f"1 of 1 connected client lost 1 name {wrote}. The page of the change has the way back."
