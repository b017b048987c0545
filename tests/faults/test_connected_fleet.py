"""Everything around a connected fleet fails, is restarted or renewed; none of 200 clients sees a wrong answer.

The production shape: PostgreSQL, Valkey, two ADS replicas, two workers, all real processes. The oracle of part (d) of
reliability.md: after each fault every client has exactly what the newest epoch decides, no cluster vanished that nobody
took away, no error came that the decision did not order, and streams ended only where the fault ends them. The figures
go to docs/reliability.md.
"""

import json
import secrets
import signal
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from tests.support.ads_probe import served_clusters
from tests.support.clocks import WrongClock
from tests.support.figures import measured, seconds
from tests.support.manage import manage
from tests.support.manifests import cluster
from tests.support.site import (
    CLIENTS,
    KILLED_ENDS,
    LEAVING_ENDS,
    MISSING,
    REPLICAS,
    WORKERS,
    Site,
    nothing_wrong,
    site_of,
    stores,
)
from tests.support.stack import readiness
from tests.support.waiting import eventually
from tests.support.watchers import watchers

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(600), pytest.mark.xdist_group("fleet")]

ACCEPTED, UNAVAILABLE = 202, 503
# So long away that tries to connect, each twice as long after the last, would come several seconds apart.
_TRIES_SPREAD_S = 8.0
_CLUSTERS = "/environments/default/resources/cluster"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    home = tmp_path_factory.mktemp("fleet") / "home"
    with stores() as (database, redis), site_of(home, database, redis, listeners=[MISSING]) as site:
        site.publish("first")
        site.converges(within_s=30)
        yield site


def told_s(site: Site, name: str) -> float:
    """The time of day of the newest line in the log of a process, by its own clock."""
    home = site.parley.home
    lines = (home.parent / f"{home.name}-{name}.log").read_text(encoding="utf-8").splitlines()
    told_at: str = json.loads(lines[-1])["timestamp"]
    return datetime.fromisoformat(told_at).timestamp()


def test_f1_f2__redis_dies_and_comes_back_empty__changes_arrive_by_the_poll(site: Site) -> None:
    site.redis.kill()
    started = time.monotonic()
    site.publish("without-redis")
    without = site.converges(within_s=10)
    without_s = time.monotonic() - started

    site.redis.start()
    started = time.monotonic()
    site.publish("with-redis-again")
    back = site.converges(within_s=10)

    nothing_wrong(without, back)
    measured(without_redis_s=without_s, back_s=time.monotonic() - started)


def test_f3__redis_is_frozen__nobody_waits_for_it(site: Site) -> None:
    site.redis.freeze()
    try:
        started = time.monotonic()
        site.publish("frozen")
        report = site.converges(within_s=15)
        taken_s = time.monotonic() - started
    finally:
        site.redis.thaw()

    nothing_wrong(report)
    measured(frozen_redis_s=taken_s)


def test_f4__forged_lost_and_repeated_hints__change_nothing(site: Site) -> None:
    before = site.fleet.report().responses
    site.forge_hints()
    site.publish("among-forged-hints")

    report = site.converges(within_s=10)

    nothing_wrong(report)
    # One response for the change, to each client; before the change there was nothing to send.
    assert report.responses <= 2 * CLIENTS
    assert before >= 0
    measured(responses_for_each_client=report.responses / CLIENTS)


def test_f5__database_dies__clients_keep_what_they_have_and_writers_are_told(site: Site) -> None:
    site.database.stop()
    answer = site.parley.call("PUT", f"{_CLUSTERS}/late", cluster("late"))
    newcomer = eventually(lambda: served_clusters(site.parley.ads_port), within_s=5)
    eventually(lambda: readiness(site.parley.metrics_ports[0])[1], lambda text: "degraded" in text, within_s=10)
    status, _ = readiness(site.parley.metrics_ports[0])
    during = site.fleet.report()
    time.sleep(_TRIES_SPREAD_S)
    site.database.start()
    started = time.monotonic()
    site.publish("after-the-database")
    published_s = time.monotonic() - started
    after = site.converges(within_s=15)

    assert published_s < 3
    assert (answer.status, answer.body["code"][:3], "Retry-After" in answer.headers) == (UNAVAILABLE, "XDS", True)
    assert set(newcomer) == set(site.published[:-1])
    assert status == 200
    nothing_wrong(during, after)
    measured(published_s=published_s, after_database_s=time.monotonic() - started)


def test_f6__a_table_is_locked__the_build_is_tried_again_and_clients_wait_for_nobody(site: Site) -> None:
    change = site.parley.apply(cluster("behind-a-lock"))
    with psycopg.connect(site.database.url) as session:
        session.execute("LOCK TABLE catalog_environment IN ACCESS EXCLUSIVE MODE")
        answered_s = seconds(lambda: served_clusters(site.parley.ads_port))
        time.sleep(6)
    site.published.append("behind-a-lock")
    started = time.monotonic()
    site.parley.published(change, within_s=15)
    report = site.converges(within_s=15)

    nothing_wrong(report)
    measured(answer_meanwhile_s=answered_s, after_the_lock_s=time.monotonic() - started)


def test_f7__no_connection_is_left__writers_are_told_and_everything_recovers(site: Site) -> None:
    with ExitStack() as held:
        with suppress(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(site.database.url))
        statuses = []
        for name in ("x0", "x1", "x2"):
            statuses.append(site.parley.call("PUT", f"{_CLUSTERS}/{name}", cluster(name)).status)
            if statuses[-1] == ACCEPTED:
                site.published.append(name)
        during = site.fleet.report()
    started = time.monotonic()
    site.publish("connections-again")
    report = site.converges(within_s=15)

    # Connections that the processes had already go on; a new one is refused, and that is said.
    assert set(statuses) <= {ACCEPTED, UNAVAILABLE}
    nothing_wrong(during, report)
    measured(recovered_s=time.monotonic() - started)


def test_f8__both_workers_die_in_the_middle_of_changes__none_is_lost(site: Site) -> None:
    changes = [site.parley.apply(cluster(f"killed-{number}")) for number in range(10)]
    site.published += [f"killed-{number}" for number in range(10)]
    for name in WORKERS:
        site.parley.stop(name, signal.SIGKILL)

    started = time.monotonic()
    for name in WORKERS:
        site.parley.start(name)
    for change in changes:
        site.parley.published(change, within_s=30)
    report = site.converges(within_s=15)

    nothing_wrong(report)
    measured(after_workers_s=time.monotonic() - started)


def test_f13__one_replica_is_killed__its_clients_move_and_miss_nothing(site: Site) -> None:
    site.parley.stop("ads0", signal.SIGKILL)
    site.publish("one-replica-is-dead")
    report = site.converges(within_s=20)
    site.parley.start("ads0")
    site.parley.ready("ads0")
    site.publish("both-again")
    after = site.converges(within_s=20)

    nothing_wrong(report, after, ends=KILLED_ENDS)
    assert report.without_s <= 5
    measured(longest_without_a_stream_s=report.without_s)


def test_f14__replicas_are_restarted_one_after_the_other_while_changes_go_on__no_update_is_missed(site: Site) -> None:
    done = threading.Event()
    names: list[str] = []

    def keep_changing() -> None:
        while not done.is_set():
            site.parley.apply(cluster(f"rolling-{len(names)}"))
            names.append(f"rolling-{len(names)}")
            done.wait(0.3)

    writer = threading.Thread(target=keep_changing)
    writer.start()
    try:
        for name in REPLICAS:
            site.parley.restart(name)
    finally:
        done.set()
        writer.join()
    site.published += names
    report = site.converges(within_s=20)

    nothing_wrong(report, ends=LEAVING_ENDS)
    assert report.without_s <= 3
    measured(longest_without_a_stream_s=report.without_s, changes_meanwhile=len(names))


def test_f16__clocks_are_an_hour_off_and_step__changes_arrive_in_order_all_the_same(site: Site, tmp_path: Path) -> None:
    hour_s = 3600
    ahead, behind = WrongClock(tmp_path / "ahead", hour_s), WrongClock(tmp_path / "behind", -hour_s)
    for name, clock in (("ads0", ahead), ("worker0", behind), ("ads1", behind), ("worker1", ahead)):
        site.parley.stop(name)
        site.parley.start(name, clock.variables)
        if name.startswith("ads"):
            site.parley.ready(name)
    assert told_s(site, "ads0") - told_s(site, "ads1") > hour_s
    reports, taken_s = [], []
    for number, shifts_s in enumerate(((hour_s, -hour_s), (-hour_s, hour_s), (0, 0))):
        for clock, shift_s in zip((ahead, behind), shifts_s, strict=True):
            clock.step(shift_s)
        started = time.monotonic()
        site.publish(f"at-another-time-{number}")
        reports.append(site.converges(within_s=20))
        taken_s.append(time.monotonic() - started)
    for name in ("ads0", "worker0", "ads1", "worker1"):
        site.parley.stop(name)
        site.parley.start(name)
        if name.startswith("ads"):
            site.parley.ready(name)
    site.publish("with-right-clocks")
    reports.append(site.converges(within_s=20))

    nothing_wrong(*reports, ends=LEAVING_ENDS)
    measured(slowest_s=max(taken_s))


def test_f21__peers_fall_silent__the_server_lets_them_go_and_takes_them_back(site: Site) -> None:
    def streams() -> float:
        return sum(site.parley.metric("parley_ads_streams", replica) for replica in (0, 1))

    assert streams() == CLIENTS
    site.fleet.freeze()
    try:
        started = time.monotonic()
        eventually(streams, lambda count: count == 0, within_s=60)
        gone_s = time.monotonic() - started
        site.publish("while-they-were-away")
    finally:
        site.fleet.thaw()
    started = time.monotonic()
    report = site.converges(within_s=20)

    assert gone_s <= 30  # a ping after 15 s, 10 s for its answer
    nothing_wrong(report, ends=KILLED_ENDS)
    measured(noticed_after_s=gone_s, back_s=time.monotonic() - started)


def test_f22__replicas_are_cut_off_from_both_stores__old_and_new_clients_are_served(site: Site) -> None:
    site.database.stop()
    site.redis.kill()
    with watchers(site.parley.ads_ports, count=20, listeners=[MISSING]) as newcomers:
        new = newcomers.agree(*site.published, within_s=20)
    during = site.fleet.report()
    site.redis.start()
    site.database.start()
    started = time.monotonic()
    eventually(lambda: readiness(site.parley.web_port)[0], lambda code: code == 200, within_s=15)
    site.publish("healed")
    after = site.converges(within_s=15)

    nothing_wrong(new, during, after)
    measured(healed_s=time.monotonic() - started)


def test_f26__tables_go_back_and_forward_while_clients_are_served__they_notice_nothing(site: Site) -> None:
    home = site.parley.home
    for target in (["clients", "zero"], []):
        moved = manage(home, "migrate", *target, "--no-input", database=site.database.url)
        assert moved.returncode == 0, moved.stderr
    started = time.monotonic()
    site.publish("migrated")
    report = site.converges(within_s=20)

    nothing_wrong(report)
    measured(after_the_migration_s=time.monotonic() - started)


def test_keys__are_rotated__clients_notice_nothing(site: Site, tmp_path: Path) -> None:
    new = urlsafe_b64encode(secrets.token_bytes(32)).decode()
    both = f"{new},{site.parley.environment['PARLEY_ENCRYPTION_KEYS']}"
    site.parley.environment["PARLEY_ENCRYPTION_KEYS"] = both
    programs = (*WORKERS, *REPLICAS, "web")
    for name in programs:
        site.parley.restart(name)
    rotated = manage(site.parley.home, "rotate_keys", database=site.database.url, keys=both)
    site.parley.environment["PARLEY_ENCRYPTION_KEYS"] = new
    for name in programs:
        site.parley.restart(name)
    site.publish("under-the-new-key")
    report = site.converges(within_s=20)

    assert rotated.returncode == 0, rotated.stderr
    assert "may be dropped" in rotated.stdout
    nothing_wrong(report, ends=LEAVING_ENDS)
    measured(longest_without_a_stream_s=report.without_s)
