"""A write by which clients lose something, and those that do so with many resources."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tests.api.conftest import Answer, Caller
from tests.services.incidents.fleet import Fleet

HERE: Final = "environments/default"
CLIENTS: Final = 3


@dataclass(frozen=True, slots=True)
class Write:
    """A request that takes these names from three of the `connected` clients; `status` once it is accepted."""

    method: str
    path: str
    body: object = None
    names: tuple[str, ...] = ("pay",)
    status: int = 202
    query: str = ""
    connected: int = CLIENTS

    def send(self, api: Caller, **query: object) -> Answer:
        given = "&".join([*filter(None, [self.query]), *(f"{name}={value}" for name, value in query.items())])
        return api(self.method, f"{self.path}?{given}" if given else self.path, self.body)


Made = Callable[[Caller, Fleet], Write]


def bulk_delete(_api: Caller, _fleet: Fleet) -> Write:
    return Write("POST", f"{HERE}/resources/bulk", {"act": "delete", "resources": [{"type": "cluster", "name": "pay"}]})


def bulk_quarantine(_api: Caller, _fleet: Fleet) -> Write:
    chosen = [{"type": "cluster", "name": "pay"}]
    return Write("POST", f"{HERE}/quarantines", {"act": "quarantine", "resources": chosen, "reason": "r"})
