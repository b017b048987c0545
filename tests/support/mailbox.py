"""A mail server on loopback: takes every mail, or refuses every recipient, and keeps what it took."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage


@dataclass
class Mailbox:
    """A mail server. `refuses`: what it answers to recipients instead of taking them; empty: it takes them."""

    port: int = 0
    refuses: str = ""
    received: list[EmailMessage] = field(default_factory=list)


@contextmanager
def mailbox() -> Iterator[Mailbox]:
    """Run a mail server (RFC 5321, as much as a sender needs) until the block ends."""
    state = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 mailbox")
            while line := self.rfile.readline():
                verb = line[:4].strip().upper()
                if verb == b"DATA":
                    self._say("354 go on")
                    self._keep()
                    self._say("250 kept")
                elif verb == b"QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say(state.refuses if verb == b"RCPT" and state.refuses else "250 ok")

        def _keep(self) -> None:
            lines = []
            while (line := self.rfile.readline()) not in (b".\r\n", b""):
                lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
            state.received.append(message_from_bytes(b"".join(lines), policy=policy.default))

        def _say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
