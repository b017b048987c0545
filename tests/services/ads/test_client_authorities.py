"""docs/how-to/rotate-client-ca.md, step by step: the authority changes, and whoever follows keeps the stream."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from structlog.testing import capture_logs

from adsserver.config import TlsFiles
from adsserver.identity.identification import WITHDRAWN
from tests.services.ads.test_mtls import PAY, _channel, _served, connect
from tests.support.ads import Running, running_mtls
from tests.support.certificates import Authority, replace_file, server_files


@pytest.fixture
def old() -> Authority:
    return Authority("old")


@pytest.fixture
def files(tmp_path: Path, old: Authority) -> TlsFiles:
    return server_files(tmp_path, old, "ads.example")


@pytest.fixture
async def run(files: TlsFiles) -> AsyncIterator[Running]:
    async with running_mtls(files) as started:
        yield started


async def test_client_authority__is_rotated_as_the_page_says__only_who_did_not_follow_loses_the_stream(
    run: Running, old: Authority, files: TlsFiles
) -> None:
    assert files.client_ca is not None
    new = Authority("new")
    with_old, with_new = old.issue(PAY), new.issue(PAY)
    assert await connect(run, old, with_new) is grpc.StatusCode.UNAVAILABLE  # before step 1 nobody knows it
    async with _channel(run, old, with_old) as late:
        late_call = await _served(late)

        with capture_logs() as logs:
            replace_file(files.client_ca, old.pem() + new.pem())
            await run.server._callers.look()
        assert [(each["event"], each["certificates"]) for each in logs if each["event"] == "authorities.changed"] == [
            ("authorities.changed", 2)
        ]
        assert not late_call.done()

        # Reissued: the stream of the certificate before goes on beside that of the new one.
        async with _channel(run, old, with_new) as early:
            early_call = await _served(early)
            assert not late_call.done()
            assert await connect(run, old, with_old) is grpc.StatusCode.OK

            with capture_logs() as logs:
                replace_file(files.client_ca, new.pem())
                await run.server._callers.look()
            assert [each["certificates"] for each in logs if each["event"] == "authorities.changed"] == [1]
            ended = await asyncio.wait_for(late_call.code(), 5), await late_call.details()
            assert ended == (grpc.StatusCode.UNAUTHENTICATED, WITHDRAWN)
            assert await connect(run, old, with_old) is grpc.StatusCode.UNAVAILABLE
            assert not early_call.done()
            assert await connect(run, old, with_new) is grpc.StatusCode.OK

            # Somebody was left behind: both again.
            replace_file(files.client_ca, old.pem() + new.pem())
            await run.server._callers.look()
            assert await connect(run, old, with_old) is grpc.StatusCode.OK
            assert not early_call.done()
