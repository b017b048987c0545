"""What probes and scrapers are told."""

import threading

import pytest
from django.db import OperationalError
from django.test import Client

from controlplane.ops import health
from xdscore.build import BUILD_VERSION

NO_DATABASE = f"the database does not answer\nversion: {BUILD_VERSION}\n".encode()


def test_healthz__no_database_asked__is_well(client: Client) -> None:
    answer = client.get("/healthz")

    assert (answer.status_code, answer.content) == (200, b"ok\n")
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.django_db
def test_readyz__tables_are_current__is_ready(client: Client) -> None:
    assert client.get("/readyz").status_code == 200
    assert client.get("/readyz").status_code == 200  # the second time it only asks whether the database answers


def test_readyz__database_does_not_answer__is_not_ready_and_says_why(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_answer() -> bool:
        raise OperationalError("connection refused")

    monkeypatch.setattr(health, "wrong_here", no_answer)

    answer = client.get("/readyz")

    assert (answer.status_code, answer.content) == (503, NO_DATABASE)
    assert answer["Parley-Version"] == BUILD_VERSION


def test_readyz__database_says_nothing__answers_within_its_bound_and_asks_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, asked = threading.Event(), []

    def waits() -> bool:
        asked.append(threading.current_thread().name)
        answers.wait(60)
        raise OperationalError("it was away")

    monkeypatch.setattr(health, "wrong_here", waits)
    monkeypatch.setattr(health, "_WAIT_S", 0.05)
    try:
        # Each of them comes back while the question is still waiting.
        told = [client.get("/readyz") for _ in range(3)]
    finally:
        answers.set()

    assert {(each.status_code, each.content) for each in told} == {(503, NO_DATABASE)}
    assert len(asked) == 1


def test_readyz__written_to__is_refused(client: Client) -> None:
    assert client.post("/readyz").status_code == 405


@pytest.mark.django_db
def test_metrics__under_the_public_name__are_not_there(client: Client) -> None:
    answer = client.get("/metrics")

    assert answer.status_code == 404
    assert b"parley_" not in answer.content
