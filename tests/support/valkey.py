"""A real Valkey over TCP, started, frozen and killed by tests."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import redis

from controlplane.ops.supervisor.valkey import valkey_binary
from tests.support.ports import free_ports
from tests.support.waiting import eventually


@dataclass(slots=True)
class Valkey:
    """One Valkey server on one port."""

    port: int
    process: "subprocess.Popen[bytes] | None" = field(default=None)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server, empty."""
        binary = valkey_binary()
        assert binary is not None
        command = [str(binary), "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        eventually(self._answers, within_s=10)

    def kill(self) -> None:
        """Kill the server, as the kernel would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Stop the server's process without closing a connection."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the stopped server go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def client(self) -> "redis.Redis":
        """A new client of the server."""
        return redis.Redis(port=self.port)

    def _answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")


@contextmanager
def valkey() -> Iterator[Valkey]:
    """Run a server until the block ends."""
    (port,) = free_ports(1)
    server = Valkey(port)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.thaw()
            server.kill()
