"""What only asks leaves nothing: neither a row of the database nor a key of Redis (texts.md section 4, "Dry-run
guarantee"), against a real web process and a real Valkey.
"""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from redis import Redis

from tests.support.manifests import cluster, route
from tests.support.stack import Parley, running_apart
from tests.support.valkey import Valkey, valkey
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("dry-runs")]
QUEUE = "celery"
# What a hint says of the two environments there are.
DEFAULT, OTHER = "[1]", "[2]"
CASE = {"node_id": "n", "type": "cluster", "name": "pay", "expect": "allow"}
# Everything of the API that asks what would be, or what is, by sending a body.
ASKS: dict[str, tuple[str, object, int]] = {
    "a plan": ("/environments/default/apply?dry_run=true&text=true", {"resources": [cluster("new")]}, 200),
    "a deletion": (
        "/environments/default/apply?dry_run=true",
        {"resources": [], "owner": "team", "prune": True, "delete": [{"type": "cluster", "name": "pay"}]},
        200,
    ),
    "nothing to do": ("/environments/default/apply?dry_run=true", {"resources": [cluster("pay")]}, 200),
    "a mistake": ("/environments/default/apply?dry_run=true", {"resources": [{**cluster("x"), "wrong": 1}]}, 422),
    "a strict refusal": (
        "/environments/default/apply?dry_run=true&strict=true",
        {"resources": [route("edge", "nowhere")]},
        422,
    ),
    "a moved base": ("/environments/default/apply?dry_run=true", {"resources": [], "base_epoch": 999}, 422),
    "validation": ("/validate", {"resources": [cluster("pay")]}, 200),
    "cases": ("/environments/default/access/test", {"cases": [CASE]}, 200),
}


@pytest.fixture(scope="module")
def redis() -> Iterator[Valkey]:
    with valkey() as server:
        yield server


@pytest.fixture(scope="module")
def parley(redis: Valkey, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parley]:
    """A web process alone: what it puts into Redis stays there, because no worker takes it out."""
    home = tmp_path_factory.mktemp("dry") / "home"
    with running_apart(home, {"REDIS_URL": redis.url}, ads=0, workers=0) as running:
        assert running.call("PUT", "/environments/default/resources/cluster/pay", cluster("pay")).status == 202
        assert running.call("POST", "/environments", {"key": "other"}).status == 201
        eventually(lambda: set(hinted(redis)), {DEFAULT, OTHER}.__eq__, within_s=30)
        yield running


def in_redis(redis: Valkey) -> dict[bytes, tuple[bytes | None, bool]]:
    """Every key: its value as the server would write it to disk, and whether it expires."""
    with Redis(port=redis.port) as client:
        return {key: (client.dump(key), int(client.pttl(key)) >= 0) for key in client.scan_iter()}


def in_database(parley: Parley) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    with sqlite3.connect(f"file:{parley.home / 'db.sqlite3'}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: database.execute(f'SELECT * FROM "{table}"').fetchall() for table in tables}  # noqa: S608


def hinted(redis: Valkey) -> list[str]:
    """The tasks that wait for a worker, oldest first: what each is about."""
    with Redis(port=redis.port) as client:
        return [json.loads(each)["headers"]["argsrepr"] for each in reversed(client.lrange(QUEUE, 0, -1))]


def write(parley: Parley, environment: str, name: str) -> None:
    answer = parley.call("PUT", f"/environments/{environment}/resources/cluster/{name}", cluster(name))
    assert answer.status == 202, answer


def settled(parley: Parley, redis: Valkey, name: str) -> list[str]:
    """All hints there are. They are sent one after the other by a thread: once that of this write is there, no earlier
    one is on its way.
    """
    before = hinted(redis).count(OTHER)
    write(parley, "other", name)
    return eventually(lambda: hinted(redis), lambda found: found.count(OTHER) > before, within_s=30)


def test_write__as_opposed_to_what_follows__leaves_a_hint_in_redis(parley: Parley, redis: Valkey) -> None:
    before = settled(parley, redis, "first")

    write(parley, "default", "seen")

    assert settled(parley, redis, "second") == [*before, DEFAULT, OTHER]


@pytest.mark.parametrize("ask", ASKS)
def test_ask__of_any_kind__leaves_database_and_redis_as_they_were(parley: Parley, redis: Valkey, ask: str) -> None:
    path, body, status = ASKS[ask]
    hints = settled(parley, redis, f"before-{list(ASKS).index(ask)}")
    stored, kept = in_database(parley), in_redis(redis)

    answer = parley.call("POST", path, body)

    assert answer.status == status, answer
    assert in_database(parley) == stored
    assert in_redis(redis) == kept
    assert settled(parley, redis, f"after-{list(ASKS).index(ask)}") == [*hints, OTHER]
