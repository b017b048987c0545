"""A receiver of webhooks on loopback: keeps what it is sent, and answers what it is told to."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Received:
    """One request to a webhook: its headers, its body, and the path with its query."""

    headers: dict[str, str]
    body: bytes
    path: str


@dataclass
class Receiver:
    """A receiver of webhooks. `status` and `says` are its answer from now on. Between `hold` and `let_go` it
    answers nobody; `waiting` are the requests that wait for its answer.
    """

    url: str = ""
    status: int = 200
    says: bytes = b"ok"
    received: list[Received] = field(default_factory=list)
    waiting: list[Received] = field(default_factory=list)
    most_at_once: int = 0
    _open: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._open.set()

    def hold(self) -> None:
        """Answer no request until `let_go`."""
        self._open.clear()

    def let_go(self) -> None:
        """Answer the requests that wait, and every later one."""
        self._open.set()

    def answer(self, received: Received) -> None:
        """Keep a request, and return when it may be answered."""
        self.waiting.append(received)
        self.most_at_once = max(self.most_at_once, len(self.waiting))
        self._open.wait(20)
        self.waiting.remove(received)
        self.received.append(received)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver of webhooks until the block ends."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            state.answer(Received(dict(self.headers), body, self.path))
            self.send_response(state.status)
            if 300 <= state.status < 400:
                self.send_header("Location", state.url + "elsewhere")
            self.send_header("Content-Length", str(len(state.says)))
            self.end_headers()
            self.wfile.write(state.says)

        def log_message(self, *_arguments: object) -> None:
            """Log nothing: the test looks at what was received."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.let_go()
        server.shutdown()
        server.server_close()
        thread.join()
