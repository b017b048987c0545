"""ADS starts while the database and Redis are away: it serves the last verified snapshot from disk (P8, P9, P10)."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.config.home import Home
from tests.support.ads_probe import served_clusters
from tests.support.manifests import cluster
from tests.support.ports import free_ports
from tests.support.stack import Parley, readiness, running_ads, running_up
from tests.support.waiting import eventually

pytestmark = [pytest.mark.timeout(180), pytest.mark.xdist_group("up")]

NAMES = ["ledger", "pay"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a Parley that served two clusters left on disk."""
    place = tmp_path_factory.mktemp("disk") / "home"
    with running_up(place) as parley:
        parley.apply_and_publish(*(cluster(name, eds=False, type="STATIC") for name in NAMES))
        eventually(lambda: served_clusters(parley.ads_port), lambda names: sorted(names) == NAMES, within_s=10)
    return place


def away(home: Path) -> Mapping[str, str]:
    """A database and a Redis where nobody listens, and the keys under which the disk was written."""
    database, redis = free_ports(2)
    return {
        "DATABASE_URL": f"postgres://parley:parley@127.0.0.1:{database}/parley",
        "REDIS_URL": f"redis://127.0.0.1:{redis}/0",
        "PARLEY_ENCRYPTION_KEYS": Home(home).encryption_keys.read_text().strip(),
    }


def ready(parley: Parley) -> tuple[int, str]:
    return readiness(parley.metrics_ports[0])


def test_ads__starts_without_database_and_redis__serves_from_disk_and_says_so(home: Path) -> None:
    with running_ads(home, away(home)) as parley:
        eventually(lambda: ready(parley)[0], lambda status: status == 200, within_s=10)

        names = served_clusters(parley.ads_port)
        _, body = ready(parley)

    assert sorted(names) == NAMES
    assert "degraded" in body


def test_ads__what_is_on_disk_was_changed__serves_nothing_of_it_and_is_not_ready(home: Path) -> None:
    files = [file for file in sorted((home / "cache").rglob("*")) if file.is_file() and file.stat().st_size]
    kept = {file: file.read_bytes() for file in files}
    for file, data in kept.items():
        middle = len(data) // 2
        file.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    try:
        # P9: silence, then UNAVAILABLE before any response; never "empty".
        with running_ads(home, {**away(home), "PARLEY_LIMIT_FIRST_SNAPSHOT_WAIT_MS": "500"}) as parley:
            status, _ = eventually(lambda: ready(parley), lambda got: "no verified snapshot" in got[1], within_s=10)
            names = served_clusters(parley.ads_port)
    finally:
        for file, data in kept.items():
            file.write_bytes(data)

    assert files
    assert (status, names) == (503, [])
