"""A running ADS server with an in-memory store."""

from collections.abc import AsyncIterator

import pytest

from tests.support.ads import Running, running


@pytest.fixture
async def run() -> AsyncIterator[Running]:
    async with running() as started:
        yield started
