"""A request under a name that is none of ours: 400, and one line in the log."""

import json
import logging

import pytest
from django.test import AsyncClient, Client
from pytest_django.fixtures import Settings

HOSTS = ("web:8000", "10.244.3.7:8000", "evil.example", "a b", "", "x" * 300)


def told(caplog: pytest.LogCaptureFixture) -> str:
    """The name in the one line that was logged."""
    (record,) = caplog.records
    assert isinstance(record.msg, dict)
    assert record.exc_info is None
    assert (record.msg["event"], record.levelno) == ("host.refused", logging.WARNING)
    assert "PARLEY_PUBLIC_URL" in record.msg["detail"]
    assert "PARLEY_WEB_METRICS_ADDRESS" in record.msg["detail"]
    return str(record.msg["host"])


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/readyz", "/login", "/no-such-page"])
def test_page__under_a_foreign_name__400_and_one_line_without_a_traceback(
    host: str, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = Client().get(path, headers={"Host": host})

    assert answer.status_code == 400
    assert told(caplog) == host


def test_api__under_a_foreign_name__problem_document_and_one_line(caplog: pytest.LogCaptureFixture) -> None:
    answer = Client().get("/api/v1/environments", headers={"Host": "evil.example"})

    assert (answer.status_code, json.loads(answer.content)["code"]) == (400, "XDS1001")
    assert told(caplog) == "evil.example"


@pytest.mark.parametrize("path", ["/readyz", "/api/v1/environments"])
async def test_asynchronous_chain__as_in_the_real_server__says_the_same(
    path: str, caplog: pytest.LogCaptureFixture, settings: Settings
) -> None:
    settings.ALLOWED_HOSTS = ["parley.example.com"]

    answer = await AsyncClient().get(path)

    assert answer.status_code == 400
    assert told(caplog) == "testserver"


def test_page__under_our_own_name__is_served(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["parley.example.com"]

    assert Client().get("/healthz", headers={"Host": "parley.example.com"}).status_code == 200


def test_order__strangers_are_counted_first__and_nothing_is_taken_before(settings: Settings) -> None:
    chain = settings.MIDDLEWARE

    assert (
        chain.index("controlplane.api.strangers.StrangerRate")
        < chain.index("controlplane.api.hosts.HostCheck")
        < chain.index("controlplane.api.turns.TurnsMiddleware")
    )
