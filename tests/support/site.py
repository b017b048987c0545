"""The production shape with a fleet: PostgreSQL, Valkey, two ADS replicas, two workers and many clients, all real
processes. The fault tests and the soak break it; the fleet is their oracle (reliability (d)).
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from tests.support.manifests import cluster
from tests.support.postgres import Postgres, postgresql_server
from tests.support.stack import ROOT, Parley, running_apart
from tests.support.valkey import Valkey, valkey
from tests.support.watchers import CUT_WHILE_WRITING, Report, Watchers, watchers

CLIENTS = 200
REPLICAS = ("ads0", "ads1")
WORKERS = ("worker0", "worker1")
# How a stream may end, seen from the client, when its server is killed, and when its server leaves.
KILLED_ENDS = ("UNAVAILABLE", "CANCELLED", "UNKNOWN", CUT_WHILE_WRITING)
LEAVING_ENDS = ("OK", "UNAVAILABLE", "CANCELLED", CUT_WHILE_WRITING)
# A listener that clients ask for and that there is not, in every fault test.
MISSING, NOT_FOUND = "missing", 5
_FORGED = 500


@dataclass
class Site:
    """A running installation with its fleet, and the names of the clusters that are published."""

    parley: Parley
    database: Postgres
    redis: Valkey
    fleet: Watchers
    published: list[str] = field(default_factory=list)

    def publish(self, name: str) -> None:
        """Publish one more cluster."""
        self.parley.apply_and_publish(cluster(name))
        self.published.append(name)

    def converges(self, *, within_s: float) -> Report:
        """Wait until every client has every cluster that is published."""
        return self.fleet.agree(*self.published, within_s=within_s)

    def forge_hints(self) -> None:
        """Send the replicas hints of hundreds of snapshots that do not exist, and messages that are no hints (F4)."""
        client = self.redis.client()
        for number in range(_FORGED):
            client.publish("parley:published", f"default-{number % 7}" if number % 2 else secrets.token_bytes(20))


def nothing_wrong(*reports: Report, ends: Sequence[str] = ()) -> None:
    """Fail the test unless no cluster vanished, no error came but the right one, and no stream ended otherwise than by
    `ends`.
    """
    for report in reports:
        assert report.vanished == {}
        assert report.errors.keys() <= {(MISSING, NOT_FOUND)}
        assert report.ends.keys() <= set(ends)


@contextmanager
def stores() -> Iterator[tuple[Postgres, Valkey]]:
    """Run a server with an empty database and an empty Redis until the block ends."""
    with postgresql_server() as database, valkey() as redis:
        yield database, redis


@contextmanager
def site_of(
    home: Path,
    database: Postgres,
    redis: Valkey,
    *,
    listeners: Sequence[str],
    of: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    code: Path = ROOT,
) -> Iterator[Site]:
    """Run a Parley in `home` with these stores and its fleet, whose clients ask for `listeners`, until the block ends.
    `of` has variables of single processes; `code` is the checkout that all of them are started from.
    """
    where = {"DATABASE_URL": database.url, "REDIS_URL": redis.url}
    with (
        running_apart(home, where, ads=len(REPLICAS), workers=len(WORKERS), of=of, code=code) as parley,
        watchers(parley.ads_ports, count=CLIENTS, listeners=listeners) as fleet,
    ):
        yield Site(parley, database, redis, fleet)
