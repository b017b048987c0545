"""/readyz: what keeps this process from serving, and what only makes it slow."""

import re
import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from redis import Redis

from controlplane.broker.probe import WAIT_S, BrokerProbe
from controlplane.catalog.models import Change, Environment, KeyMark
from controlplane.catalog.sealing import key_ring
from controlplane.database.aliases import READER
from controlplane.database.append_only import maintenance
from controlplane.fitness.models import ProcessState
from controlplane.ops import health
from tests.api.conftest import Caller
from tests.support.manifests import cluster
from tests.support.valkey import valkey
from xdscore.build import BUILD_VERSION


def test_readyz__nothing_waits_and_no_broker__ready_and_says_so(environments: None) -> None:
    Environment.objects.update(built_generation=100, generation=100)

    answer = Client().get("/readyz")

    lines = answer.content.decode().splitlines()
    assert answer.status_code == 200
    assert lines[:2] == ["ok", "database: ok"]
    assert lines[2].startswith("broker: cannot be reached")
    assert lines[3:] == ["worker: ok", "keys: ok", "schema: ok", "clock: ok", "sets: ok", f"version: {BUILD_VERSION}"]
    assert answer["Parley-Version"] == BUILD_VERSION


def told() -> tuple[int, list[str]]:
    answer = Client().get("/readyz")
    return answer.status_code, answer.content.decode().splitlines()


UNFIT = pytest.mark.django_db(transaction=True, databases=["default", READER])  # another connection reads it


@UNFIT
def test_readyz__keys_open_nothing_of_what_is_stored__is_not_ready_and_says_which() -> None:
    KeyMark.objects.all().delete()
    KeyMark.objects.create(mark="0" * 16)

    status, lines = told()

    assert status == 503
    assert "open nothing of what this database holds, which is under 0000000000000000" in lines[0]


@UNFIT
def test_readyz__newest_key_is_missing_and_the_database_is_newer__ready_with_a_line_for_each() -> None:
    KeyMark.objects.all().delete()
    KeyMark.objects.create(mark=key_ring().marks[0])
    KeyMark.objects.create(mark="0" * 16)
    recorder = MigrationRecorder(connection)
    recorder.record_applied("catalog", "9999_of_tomorrow")
    try:
        status, lines = told()
    finally:
        recorder.record_unapplied("catalog", "9999_of_tomorrow")

    assert status == 200
    assert any(line.startswith("keys: lacks the newest key 0000000000000000") for line in lines)
    assert any(line.startswith("schema: ") and "catalog.9999_of_tomorrow" in line for line in lines)
    assert "clock: ok" in lines


@UNFIT
def test_readyz__migrations_to_apply__is_not_ready_and_names_them() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("catalog", "0016_key_marks")
    try:
        status, lines = told()
    finally:
        recorder.record_applied("catalog", "0016_key_marks")

    assert (status, lines) == (
        503,
        [
            "the database has migrations to apply (catalog.0016_key_marks): manage.py migrate",
            f"version: {BUILD_VERSION}",
        ],
    )


@UNFIT
def test_readyz__others_do_not_fit__says_which_role_and_not_where() -> None:
    row = {"host": "secret-host", "pid": 1, "seen_at": timezone.now(), "wrong": [["clock", "an hour ahead", False]]}
    ProcessState.objects.create(id="1", role="worker", **row)
    ProcessState.objects.create(id="2", role="worker", **row)

    status, lines = told()

    assert status == 200
    assert lines.count("worker process: an hour ahead") == 1
    assert "secret-host" not in "".join(lines)


@pytest.mark.django_db(transaction=True, databases=["default", READER])  # another connection reads it
def test_readyz__change_that_nobody_builds__says_since_when(api: Caller) -> None:
    api.put("environments/default/resources/cluster/pay", cluster())
    with transaction.atomic(), maintenance():
        Change.objects.update(at=timezone.now() - timedelta(seconds=90))

    answer = Client().get("/readyz")

    assert answer.status_code == 200
    said = re.search(r"^worker: a change waits for a build since (\d+) s", answer.content.decode(), re.MULTILINE)
    assert said is not None, answer.content
    # Time goes on between the two lines above.
    assert int(said[1]) >= 90


def test_readyz__frozen_broker__answers_without_waiting_for_it(
    environments: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with valkey() as server:
        client = Redis.from_url(server.url, socket_timeout=None)
        client.ping()
        monkeypatch.setattr(health, "probe", BrokerProbe(client.ping))
        server.freeze()

        # Nothing answers until the broker is thawed.
        answers = [Client().get("/readyz").content.decode() for _ in range(2)]

        server.thaw()
    assert all("broker: does not answer" in answer for answer in answers)
    assert WAIT_S < 1.0  # what an orchestrator's probe commonly grants


def test_broker_probe__many_ask_at_once__asks_once() -> None:
    asked: list[int] = []
    release = threading.Event()

    def ask() -> None:
        asked.append(1)
        release.wait(5)

    probe = BrokerProbe(ask)
    threads = [threading.Thread(target=probe.state) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    release.set()

    assert asked == [1]


def test_broker_probe__answer_holds_for_a_second() -> None:
    now = [0.0]
    answers = iter(["", ""])
    probe = BrokerProbe(lambda: next(answers), clock=lambda: now[0])

    first, second = probe.state(), probe.state()
    now[0] = 2.0
    third = probe.state()
    now[0] = 4.0

    assert (first, second, third) == ("ok", "ok", "ok")
    assert probe.state().startswith("cannot be reached (StopIteration)")
