"""What xdsctl does when the server asks it to come again later."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.xdsctl import DONE, NO_ANSWER, Said, Xdsctl

BUSY = {"title": "Too many requests", "status": 429, "code": "XDS3029", "detail": "This token sends too much."}


@contextmanager
def answering(*answers: tuple[int, str]) -> Iterator[tuple[str, list[str]]]:
    """A server that gives these answers (status, Retry-After) in turn, the last one for ever; and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, later = answers[min(len(asked), len(answers) - 1)]
            asked.append(self.path)
            body = json.dumps({"count": 0, "next": None, "results": []} if status == 200 else BUSY).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json" if status == 200 else "application/problem+json")
            self.send_header("Content-Length", str(len(body)))
            if later:
                self.send_header("Retry-After", later)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def rules(server: str, *more: str) -> Said:
    return Xdsctl({"XDSCTL_TOKEN": "t", "XDSCTL_CONFIG": "/nonexistent/contexts.json"})(
        "access", "rules", "--server", server, *more
    )


@pytest.mark.parametrize("status", [429, 503])
def test_request__server_asks_to_come_again__is_sent_again_and_that_is_said(status: int) -> None:
    with answering((status, "0"), (200, "")) as (server, asked):
        said = rules(server)

    assert (said.status, len(asked)) == (DONE, 2)
    assert f"{status}: This token sends too much. Trying again in 0 s (2 of 4)." in said.err
    assert "Trying" not in said.out


def test_request__server_asks_again_and_again__3_after_four_tries() -> None:
    with answering((429, "0")) as (server, asked):
        said = rules(server)

    assert (said.status, len(asked)) == (NO_ANSWER, 4)
    assert said.err.splitlines()[-1] == "error: This token sends too much."


@pytest.mark.parametrize("later", ["11", "", "soon"], ids=["too long", "not said", "no number"])
def test_request__pause_that_is_not_waited__3_at_once(later: str) -> None:
    with answering((429, later)) as (server, asked):
        said = rules(server, "--quiet")

    assert (said.status, len(asked)) == (NO_ANSWER, 1)
    assert said.err == "error: This token sends too much.\n"


def test_audit__span_of_time__is_asked_of_the_server() -> None:
    with answering((200, "")) as (server, asked):
        said = Xdsctl({"XDSCTL_TOKEN": "t", "XDSCTL_CONFIG": "/nonexistent/contexts.json"})(
            *("audit", "--since", "2h", "--until", "1h", "--server", server)
        )

    assert said.status == DONE
    assert "since=2h&until=1h" in asked[0]
