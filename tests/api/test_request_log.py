"""Each request that was answered is one line in the log: who asked by which route, and nothing that people type."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from controlplane.accounts.models import ApiToken
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.catalog.services import environment_default_ensure
from controlplane.ops.web import application
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db(transaction=True)
PAY = "/api/v1/environments/default/resources/cluster/pay"
ROUTE = "api/v1/environments/<part:environment_key>/resources/"


@pytest.fixture
def token() -> str:
    environment_default_ensure()
    return api_token_create(name="t", scopes=ADMIN_SCOPES, actor=SYSTEM)[1]


@pytest.fixture
async def http(token: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application)
    headers = {"Authorization": f"Bearer {token}", "X-Request-ID": "ci-7"}
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
        yield client


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="controlplane")
    return caplog


def lines(said: pytest.LogCaptureFixture, event: str = "request.answered") -> list[dict[str, Any]]:
    return [each.msg for each in said.records if isinstance(each.msg, dict) and each.msg["event"] == event]


async def test_request__that_writes__is_one_line_and_its_change_another(
    http: httpx.AsyncClient, said: pytest.LogCaptureFixture
) -> None:
    answer = await http.put(f"{PAY}?message=hush", json=cluster())

    [line] = lines(said)
    [saved] = lines(said, "change.saved")
    number = ApiToken.objects.values_list("pk", flat=True)
    assert line["level"] == "info"
    assert (line["method"], line["status"], line["environment"]) == ("PUT", 202, "default")
    assert line["route"].startswith(ROUTE)
    assert line["principal"] == saved["principal"] == f"token:{await number.aget()}"
    assert 0 < line["duration_ms"] < 60_000
    assert line["request_id"] == saved["request_id"] == "ci-7"
    assert saved["change"] == answer.json()["id"]


async def test_request__whatever_it_holds__neither_path_nor_query_nor_token_is_in_the_line(
    http: httpx.AsyncClient, said: pytest.LogCaptureFixture, token: str
) -> None:
    await http.get("/api/v1/environments/default/resources/cluster/hush")
    await http.get("/hush", params={"secret": "hush"})
    await http.get("/api/v1/audit", headers={"Authorization": "Bearer hush"})
    await http.put(PAY, content=b"hush", headers={"Content-Length": "999999999"})

    told = lines(said)
    assert [line["status"] for line in told] == [404, 404, 401, 413]
    assert "hush" not in str(told)
    assert token not in str(told)
    assert [line["request_id"] for line in told] == ["ci-7"] * 4
    assert told[0]["principal"].startswith("token:")
    assert "principal" not in told[2]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/static/console/editor.js"])
async def test_request__of_a_probe_or_a_file__is_told_only_where_somebody_looks_closely(
    http: httpx.AsyncClient, said: pytest.LogCaptureFixture, path: str
) -> None:
    await http.get(path)

    assert [line["level"] for line in lines(said)] == ["debug"]


async def test_request__refused__is_no_second_line_by_django(
    http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    await http.get("/api/v1/environments/nowhere")

    assert [record.name for record in caplog.records if record.levelno >= logging.WARNING] == []
