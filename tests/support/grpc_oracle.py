"""gRPC C-core as an oracle: what a real client that implements A88 believes, by CSDS, in a process of its own.

Run as a script it is that process: it opens the targets it reads on standard input and prints what it knows.
Each target has a stream and a cache of its own; all of them are shown at once.
"""

import asyncio
import base64
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import grpc
from envoy.service.status.v3 import csds_pb2

ROOT = Path(__file__).parents[2]
_GUARD = "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING"

# A generated message; its fields are known by descriptor only.
ClientConfig = Any


class Oracle:
    """A gRPC client's process that resolves targets and tells its configuration."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asking = asyncio.Lock()

    async def open(self, target: str) -> None:
        """Begin to resolve a target such as `xds:///pay`."""
        await self._ask({"open": target})

    async def config(self, target: str) -> ClientConfig:
        """The ClientConfig of a target, by the client's own CSDS."""
        data = base64.b64decode(await self._ask({"dump": True}))
        for config in csds_pb2.ClientStatusResponse.FromString(data).config:
            # C-core writes "xds:///pay" as "xds:/pay".
            if config.client_scope == target.replace(":///", ":/"):
                return config
        raise AssertionError(f"nothing known of {target}: {csds_pb2.ClientStatusResponse.FromString(data)}")

    async def _ask(self, command: Mapping[str, object]) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        async with self._asking:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            await self._process.stdin.drain()
            async with asyncio.timeout(20):
                return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def grpc_oracle(bootstrap: Mapping[str, object], *, guard: bool = True) -> AsyncIterator[Oracle]:
    """Run a client's process with this bootstrap until the block ends; `guard`: whether A88 is on."""
    environment = os.environ | {
        "GRPC_XDS_BOOTSTRAP_CONFIG": json.dumps(bootstrap),
        _GUARD: "true" if guard else "false",
        "GRPC_VERBOSITY": "NONE",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.grpc_oracle",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
        env=environment,
        cwd=ROOT,
    )
    try:
        yield Oracle(process)
    finally:
        process.kill()
        await process.wait()


def _serve(lines: IO[str]) -> None:
    from grpc_csds import ClientStatusDiscoveryServiceServicer  # noqa: PLC0415 - for the process only

    channels: list[grpc.Channel] = []
    for line in lines:
        command = json.loads(line)
        if "open" in command:
            channel = grpc.insecure_channel(command["open"])
            channel.subscribe(lambda _: None, try_to_connect=True)
            channels.append(channel)
            answer = "opened"
        else:
            status = ClientStatusDiscoveryServiceServicer.FetchClientStatus(None, None)
            answer = base64.b64encode(status.SerializeToString()).decode()
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _serve(sys.stdin)
