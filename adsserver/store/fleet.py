"""What the clients of the whole fleet have, read back from the facts in the database (decisions U16).

The facts are written within a second and a half (one that waits for an answer: half a second later), what is read here
serves everybody for half a second: two seconds old.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields

from django.db import connection
from django.db.utils import Error as DatabaseFailure

from adsserver.identity.identification import token_hash
from adsserver.ports import Contents, Directory, FleetClient, FleetUnavailableError, Reader, ResourceStatus
from adsserver.store.display import Display
from adsserver.store.fleet_status import client_resources
from controlplane.accounts.selectors import token_principal
from controlplane.clients.fleet_selectors import StreamSubscription, connected_clients, fleet_subscriptions
from xdscore.snapshot import Content, Snapshot

_FRESH_S = 0.5
# Clients whose subscriptions are read at once: an answer that turns out too large stops early.
_BATCH = 500
_NACKS_PER_BATCH = 2_000
# Ours have 50 characters; nothing longer is worth a hash and a read.
_MAX_TOKEN_CHARS = 200
_CLIENT_COLUMNS = tuple(field.name for field in fields(FleetClient))

Clock = Callable[[], float]


class Fleet:
    """The status of the clients of all ADS processes, from the database. Implements ports.FleetStatus.

    `observe` is called by the loader's thread, everything else by one other thread; `observe` only replaces references,
    so that neither waits for the other.
    """

    def __init__(self, contents: Contents, *, clock: Clock = time.monotonic, now: Clock = time.time) -> None:
        self._display = Display(contents)
        self._clock = clock
        self._now = now
        # Replaced whole by `observe`; None: nothing is loaded yet.
        self._snapshots: Mapping[str, Snapshot] = {}
        self._environments: tuple[str, ...] | None = None
        self._api_tokens: Mapping[str, float] | None = None
        self._clients: tuple[FleetClient, ...] = ()
        self._clients_until = -1.0
        self._subscriptions: dict[str, tuple[float, tuple[StreamSubscription, ...]]] = {}

    def observe(self, directory: Directory) -> None:
        """Take the directory (environments, snapshots, tokens) that is served from now on."""
        self._snapshots = directory.snapshots
        self._environments = tuple(environment.key for environment in directory.environments)
        self._api_tokens = directory.api_tokens

    def knows(self, token: str) -> bool:
        """Whether there was such an API token when the tokens were last read. Answers from memory, on any thread.
        Raises FleetUnavailableError when they were not read yet.
        """
        if self._api_tokens is None:
            raise FleetUnavailableError("This server has not read the API tokens yet; try again.")
        return self._api_tokens.get(token_hash(token), 0.0) > self._now()

    def reader(self, token: str) -> Reader | None:
        """The reader that this API token stands for, from the database each time, because a token that is revoked may
        read nothing more (reliability S2). None when it is unknown, expired or revoked. Raises FleetUnavailableError.
        """
        if self._environments is None:
            raise FleetUnavailableError("This server has loaded nothing yet; try again.")
        if not token or len(token) > _MAX_TOKEN_CHARS or not token.isascii():
            return None
        with _database():
            principal = token_principal(token, asks_provider=False)  # who left a group is known to web alone
        if principal is None:
            return None
        return Reader(f"{principal.name} ({principal.id})", frozenset(principal.sees(self._environments)))

    def clients(self) -> Sequence[FleetClient]:
        """Every connected client, in the order of environments and node ids, at most two seconds old. Raises
        FleetUnavailableError.
        """
        now = self._clock()
        if now >= self._clients_until:
            with _database():
                rows = connected_clients()
            self._clients = tuple(
                FleetClient(**{column: getattr(row, column) for column in _CLIENT_COLUMNS}) for row in rows
            )
            self._clients_until = now + _FRESH_S
        return self._clients

    def resources(
        self, clients: Sequence[FleetClient], *, contents: bool
    ) -> Iterator[tuple[FleetClient, tuple[ResourceStatus, ...]]]:
        """Each of these clients with its resources, in the order of types and names; without `contents`, `config` is
        empty. Raises FleetUnavailableError.
        """
        show = self._display.any_bytes if contents else _nothing
        for start in range(0, len(clients), _BATCH):
            batch = clients[start : start + _BATCH]
            subscriptions = self._read([client.id for client in batch])
            for client in batch:
                snapshot = self._snapshots.get(client.environment)
                yield client, client_resources(client, subscriptions[client.id], snapshot, show)

    def _read(self, clients: Sequence[str]) -> Mapping[str, tuple[StreamSubscription, ...]]:
        """The subscriptions of these clients, by client id; what was read from the database a moment ago is not read
        again.
        """
        now = self._clock()
        self._subscriptions = {key: known for key, known in self._subscriptions.items() if known[0] > now}
        missing = [client for client in clients if client not in self._subscriptions]
        if missing:
            with _database():
                found = fleet_subscriptions(clients=missing, max_nacks=_NACKS_PER_BATCH)
            self._subscriptions.update((key, (now + _FRESH_S, each)) for key, each in found.items())
        return {client: self._subscriptions[client][1] for client in clients}


@contextmanager
def _database() -> Iterator[None]:
    """A context with the calling thread's own database connection, for one read."""
    try:
        yield
    except DatabaseFailure as error:
        raise FleetUnavailableError("The database does not answer, and the status of clients is in it.") from error
    finally:
        connection.close()


def _nothing(_: Content) -> bytes:
    return b""
