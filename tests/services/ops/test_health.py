"""What probes and scrapers are told."""

import pytest
from django.db import OperationalError
from django.test import Client

from controlplane.ops import health


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

    monkeypatch.setattr(health, "_tables_current", no_answer)

    answer = client.get("/readyz")

    assert (answer.status_code, answer.content) == (503, b"the database does not answer\n")


def test_readyz__written_to__is_refused(client: Client) -> None:
    assert client.post("/readyz").status_code == 405


@pytest.mark.django_db
def test_metrics__scraped__tells_of_this_process_and_of_the_installation(client: Client) -> None:
    answer = client.get("/metrics")

    assert answer.status_code == 200
    assert b"\nprocess_resident_memory_bytes " in answer.content
    assert b"\nparley_database_up " in answer.content
