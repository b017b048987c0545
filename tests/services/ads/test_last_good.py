"""The loader with a database that is away: serves from disk what it verified, and moves on when it returns (law 4,
reliability P5, P8, P10, threat 19).
"""

import base64
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from django.conf import LazySettings
from django.db import connection
from structlog.typing import EventDict

from adsserver.ports import ClientToken
from adsserver.store import disk, last_good
from adsserver.store.disk_format import SavedSnapshot, decode_directory
from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.accounts.services import client_token_create, client_token_revoke
from controlplane.accounts.token_text import token_digest
from controlplane.builder.services import builds_sweep
from controlplane.catalog.models import Blob, Environment
from controlplane.catalog.sealing import key_ring
from controlplane.catalog.services import change_apply, environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.snapshots.models import SnapshotRow
from tests.support.ads_replica import Replica
from tests.support.last_good import altered
from tests.support.manifests import cluster, parsed, tls_secret
from tests.support.principals import somebody
from tests.support.waiting import eventually
from xdscore.environment_choice import Selector
from xdscore.resource_types import SECRET

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
CANARY = "hunter2hunter2"
SHOP = "11111111-1111-4111-8111-111111111111"


@pytest.fixture(autouse=True)
def environments() -> None:
    environment_default_ensure()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def logged() -> Iterator[list[EventDict]]:
    with structlog.testing.capture_logs() as events:
        yield events


@contextmanager
def database_away() -> Iterator[None]:
    """Every connection is refused until the end."""
    where = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "/nowhere/db.sqlite3"
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = where


def put(*trees: dict[str, object], environment: str = "default") -> None:
    change_apply(environment_key=environment, edits=[Put(parsed(tree)) for tree in trees], actor=DANA)
    builds_sweep()


def events(logged: list[EventDict], name: str) -> list[EventDict]:
    return [event for event in logged if event["event"] == name]


def test_start__database_away__serves_every_environment_from_disk_and_says_so(cache: Path) -> None:
    policy = EnvironmentPolicy(selectors=(Selector(node_id="shop-*", metadata={"stage": "prod"}),))
    environment_create(key="shop", policy=policy, actor=DANA)
    put(cluster("a"), tls_secret("key", CANARY))
    put(cluster("b"), environment="shop")
    before = Replica(cache).look()

    with database_away():
        replica = Replica(cache).look()

    assert replica.directory.environments == before.directory.environments
    assert replica.timeouts() == {"a": parsed(cluster("a")).any_bytes}
    assert replica.timeouts("shop") == {"b": parsed(cluster("b")).any_bytes}
    assert CANARY.encode() in replica.contents.any_bytes(replica.snapshot().type_state(SECRET).served["key"].content)
    status = replica.loader.status()
    assert not status.database_ok
    assert status.loaded == before.loader.status().loaded
    shown = r"serving the snapshot of \d\d:\d\d UTC from disk: the database does not answer: unable to open"
    assert pytest.importorskip("re").match(shown, status.detail)


def test_start__database_away_and_nothing_saved__offers_nothing(cache: Path) -> None:
    with database_away():
        replica = Replica(cache).look()

    assert not replica.offered
    assert replica.loader.status().detail.startswith("the database does not answer")


def test_database_returns__with_a_newer_epoch__moves_on_and_keeps_that(cache: Path) -> None:
    put(cluster("a"))
    Replica(cache).look()
    with database_away():
        replica = Replica(cache).look()
    put(cluster("b"))

    replica.look()

    assert set(replica.timeouts()) == {"a", "b"}
    assert (replica.loader.status().database_ok, replica.loader.status().detail) == (True, "")
    with database_away():
        assert set(Replica(cache).look().timeouts()) == {"a", "b"}


def test_database_returns__unchanged__keeps_the_very_snapshot(cache: Path) -> None:
    put(cluster("a"))
    Replica(cache).look()
    with database_away():
        replica = Replica(cache).look()
    served = replica.snapshot()

    replica.look()

    assert replica.snapshot() is served


def test_database_returns__with_an_older_epoch_of_the_lineage__the_epoch_stays(cache: Path) -> None:
    put(cluster("a"))
    put(cluster("b"))
    Replica(cache).look()
    with database_away():
        replica = Replica(cache).look()
    forget_newest_epoch()

    replica.look()

    assert set(replica.timeouts()) == {"a", "b"}
    assert saved(cache)["default"].epoch == replica.snapshot().epoch == 2


def test_database_returns__with_another_lineage__is_believed(cache: Path) -> None:
    put(cluster("a"))
    Replica(cache).look()
    with database_away():
        replica = Replica(cache).look()
    Environment.objects.update(lineage=SHOP, epoch=0)
    put(cluster("b"))

    replica.look()

    assert (replica.snapshot().lineage, replica.snapshot().epoch) == (SHOP, 1)
    assert saved(cache)["default"].lineage == SHOP


def test_start__database_answers_first__the_disk_is_never_served(cache: Path) -> None:
    put(cluster("a"))
    put(cluster("b"))
    Replica(cache).look()
    forget_newest_epoch()
    replica = Replica(cache).look()

    with database_away():
        replica.look()

    assert set(replica.timeouts()) == {"a"}
    assert "from disk" not in replica.loader.status().detail
    # The epoch on disk is ahead of the lineage's: it is not replaced by an older one.
    assert saved(cache)["default"].epoch == 2


def test_database_away__another_process_saves_a_newer_directory__it_is_served(cache: Path) -> None:
    put(cluster("a"))
    other = Replica(cache).look()
    with database_away():
        cut_off = Replica(cache).look()
    put(cluster("b"))
    other.look()

    with database_away():
        cut_off.look()

    assert set(cut_off.timeouts()) == {"a", "b"}


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def flip(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(altered(data, len(data) // 2))


def flip_last(file: Path) -> None:
    file.write_bytes(altered(file.read_bytes(), -1))


def the_directory(cache: Path) -> Path:
    return cache / "directory"


def the_root(cache: Path) -> Path:
    return cache / saved(cache)["default"].root


def the_access_table(cache: Path) -> Path:
    return cache / saved(cache)["default"].access


def the_chunk_of_a_cluster(cache: Path) -> Path:
    return holding(cache, parsed(cluster("a")).any_bytes)


def the_chunk_of_a_secret(cache: Path) -> Path:
    address = next(blob.hash for blob in Blob.objects.filter(kind="secret"))
    return holding(cache, bytes.fromhex(address))


FILES = [the_directory, the_root, the_access_table, the_chunk_of_a_cluster, the_chunk_of_a_secret]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", [cut, flip, flip_last, Path.unlink])
def test_start__a_file_was_damaged__nothing_of_it_is_served_and_the_log_says_why_once(
    cache: Path, logged: list[EventDict], file: Callable[[Path], Path], damage: Callable[[Path], None]
) -> None:
    put(cluster("a"), tls_secret("key", CANARY))
    Replica(cache).look()
    damage(file(cache))

    with database_away():
        replica = Replica(cache).look()
        for _ in range(3):
            replica.look()

    assert not replica.offered
    refused = events(logged, "cache.refused") + events(logged, "snapshot.refused")
    # A directory that is not there is no damage: nothing was saved yet.
    assert len(refused) == (0 if (file, damage) == (the_directory, Path.unlink) else 1)

    mended = replica.look()

    assert set(mended.timeouts()) == {"a"}
    with database_away():
        assert set(Replica(cache).look().timeouts()) == {"a"}


def test_start__one_environment_was_damaged__the_other_is_served(cache: Path) -> None:
    environment_create(key="shop", policy=EnvironmentPolicy(), actor=DANA)
    put(cluster("a"))
    put(cluster("b"), environment="shop")
    Replica(cache).look()
    flip(the_chunk_of_a_cluster(cache))

    with database_away():
        replica = Replica(cache).look()

    assert set(replica.directory.snapshots) == {"shop"}


def test_tokens__issued_and_revoked__reach_the_directory_and_the_disk(cache: Path) -> None:
    put(cluster())
    token, text = client_token_create(subject="pay", environment="default", actor=DANA)
    replica = Replica(cache).look()

    expected = {token_digest(text): ClientToken("pay", "default")}
    assert replica.directory.tokens == expected
    with database_away():
        assert Replica(cache).look().directory.tokens == expected

    client_token_revoke(token=token, actor=DANA)
    assert replica.look().directory.tokens == {}
    assert text.encode() not in b"".join(file.read_bytes() for file in cache.rglob("*") if file.is_file())


def test_start__keys_are_others__nothing_is_served(cache: Path, settings: LazySettings) -> None:
    put(cluster("a"))
    Replica(cache).look()

    settings.PARLEY = replace(settings.PARLEY, encryption_keys=(bytes(32),))
    key_ring.cache_clear()
    try:
        with database_away():
            replica = Replica(cache).look()
    finally:
        key_ring.cache_clear()

    assert not replica.offered


def test_start__database_answers_with_damage_only__the_disk_keeps_what_it_has(cache: Path) -> None:
    put(cluster("a"))
    Replica(cache).look()
    for blob in Blob.objects.filter(kind="root"):
        Blob.objects.filter(pk=blob.pk).update(data=altered(bytes(blob.data), -1))

    assert not Replica(cache).look().directory.snapshots

    with database_away():
        assert set(Replica(cache).look().timeouts()) == {"a"}


def test_cache__secrets_and_modes__ciphertext_that_only_the_owner_may_read(cache: Path) -> None:
    put(cluster("a"), tls_secret("key", CANARY))
    Replica(cache).look()

    files = list(cache.iterdir())
    assert len(files) > 4
    for form in (CANARY.encode(), base64.b64encode(CANARY.encode()).rstrip(b"="), CANARY.encode().hex().encode()):
        assert not any(form in file.read_bytes() for file in files)
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


def test_cache__cannot_be_written__serving_goes_on_one_line_and_later_it_is_tried_again(
    cache: Path, logged: list[EventDict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(last_good, "_RETRY_S", 0.0)
    cache.write_text("in the way")
    put(cluster("a"))
    replica = Replica(cache).look()
    put(cluster("b"))
    replica.look()

    assert set(replica.timeouts()) == {"a", "b"}
    assert (replica.loader.status().database_ok, replica.loader.status().detail) == (True, "")
    assert len(events(logged, "cache.unwritable")) == 1

    cache.unlink()
    replica.look()

    assert len(events(logged, "cache.writable_again")) == 1
    with database_away():
        assert set(Replica(cache).look().timeouts()) == {"a", "b"}


def test_stop__right_after_a_snapshot_was_served__it_is_on_disk(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cluster("a"))
    replica = Replica(cache).look()
    put(cluster("a", connect_timeout="2s"))
    monkeypatch.setattr(last_good, "_SLICE_S", 0.0)  # one file, and then a pause
    offered = len(replica.offered)

    replica.loader.start()
    eventually(lambda: len(replica.offered), lambda count: count > offered, within_s=10)
    replica.loader.stop(10)
    replica.loader.wait_ended()

    with database_away():
        found = Replica(cache).look()
    assert found.snapshot().epoch == replica.snapshot().epoch


def test_cache__failed_a_moment_ago__is_left_alone(cache: Path) -> None:
    cache.write_text("in the way")
    put(cluster("a"))
    replica = Replica(cache).look()
    cache.unlink()

    replica.look()

    assert not cache.exists()


def test_cache__two_processes_of_one_home__both_follow_and_the_newest_stays(cache: Path) -> None:
    one, two = Replica(cache), Replica(cache)
    for number in range(6):
        put(cluster("a", connect_timeout=f"{number + 1}s"))
        for replica in (one, two) if number % 2 else (two, one):
            replica.look()
    put(cluster("a", connect_timeout="1s"))  # what both have removed meanwhile
    two.look()
    one.look()

    with database_away():
        assert Replica(cache).look().timeouts() == {"a": parsed(cluster("a", connect_timeout="1s")).any_bytes}
    leftovers = {file.name for file in cache.iterdir()} - {"directory", "lock"}
    assert len(leftovers) <= 4 + 7  # root, access, the empty chunk and one chunk; nothing else but replaced ones


def saved(cache: Path) -> dict[str, SavedSnapshot]:
    directory = decode_directory(disk.DiskCache(cache, key_ring()).directory_bytes(), key_ring())
    return dict(directory.snapshots)


def holding(cache: Path, data: bytes) -> Path:
    (file,) = (each for each in cache.iterdir() if data in each.read_bytes())
    return file


def forget_newest_epoch() -> None:
    """What a backup restored in place would do."""
    newest = SnapshotRow.objects.latest("epoch")
    Environment.objects.filter(key="default").update(epoch=newest.epoch - 1)
    newest.delete()
