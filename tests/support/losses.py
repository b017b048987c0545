"""Changes by which clients lose something, and what takes them back, as the rooms that write them keep them."""

from typing import Final

from django.db import transaction

from controlplane.catalog.guarding import Loser, Loss, LostName
from controlplane.catalog.models import Change
from controlplane.database.append_only import maintenance

# Three of five clients: two names, which the first loses both.
LOSS: Final = Loss(
    clients=3,
    connected=5,
    kinds={"envoy 1.40": 2, "grpc-go 1.70": 1},
    names=(LostName("cluster", "pay", 3), LostName("cluster", "other", 1)),
    who=(
        Loser("c0000001", "node-1", "envoy 1.40"),
        Loser("c0000002", "node-2", "envoy 1.40"),
        Loser("c0000003", "node-3", "grpc-go 1.70"),
    ),
)


def lose(change_id: str, loss: Loss = LOSS) -> str:
    """Store a loss with a change, as if connected clients had lost something by it; the change's id."""
    return _kept(change_id, loss=loss.as_json())


def take_back(change_id: str, *, by: str) -> str:
    """Note in the change `by` that it took this one back; the id of `by`."""
    return _kept(by, undoes=change_id)


def _kept(change_id: str, **values: object) -> str:
    with transaction.atomic(), maintenance():
        assert Change.objects.filter(public_id=change_id).update(**values) == 1
    return change_id
