"""The log of a build says which requests it is about (texts.md section 4, "X-Request-ID")."""

import logging
from traceback import format_exception
from typing import Any

import pytest

from controlplane.accounts.principal import SYSTEM
from controlplane.builder import services
from controlplane.builder.memory import Memory
from controlplane.builder.services import build
from controlplane.catalog import change_names
from controlplane.catalog.models import Environment
from controlplane.catalog.services import change_apply, environment_default_ensure
from controlplane.catalog.values import Put
from controlplane.database.aliases import READER
from tests.support.manifests import cluster, parsed

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def put(name: str, request_id: str) -> None:
    edits = [Put(parsed(cluster(name)))]
    change_apply(environment_key="default", edits=edits, actor=SYSTEM, request_id=request_id)


@pytest.fixture
def environment() -> int:
    environment_default_ensure()
    found: int = Environment.objects.get(key="default").pk
    build(environment_id=found, memory=Memory())
    return found


def logged(caplog: pytest.LogCaptureFixture, event: str) -> dict[str, Any]:
    [found] = [each.msg for each in caplog.records if isinstance(each.msg, dict) and each.msg["event"] == event]
    return found


def test_build__of_several_changes__its_log_names_their_requests(
    environment: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    put("a", "ci-17")
    put("b", "")  # of the system itself
    put("c", "ci-18")

    build(environment_id=environment, memory=Memory())

    assert logged(caplog, "build.ended")["request_ids"] == ["ci-18", "ci-17"]


def test_build__that_fails__its_log_names_the_request_too(
    environment: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a", "ci-19")
    monkeypatch.setattr(services, "_prepare", lambda *_: 1 // 0)

    with pytest.raises(ZeroDivisionError) as failed:
        build(environment_id=environment, memory=Memory())

    # What the sweeper and Celery log is the exception.
    assert "ci-19" in "".join(format_exception(failed.value))
    assert logged(caplog, "build.failed")["request_ids"] == ["ci-19"]


def test_build__of_more_requests_than_a_line_holds__names_the_newest(
    environment: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(change_names, "LISTED_MAX", 2)
    for number in range(3):
        put(f"c{number}", f"ci-{number}")

    build(environment_id=environment, memory=Memory())

    assert logged(caplog, "build.ended")["request_ids"] == ["ci-2", "ci-1"]
