"""`xdsctl tail`: events as they are read and printed, and what it does when the answer ends."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest
from typer.testing import CliRunner

from xdsctl.app import app
from xdsctl.commands import tail
from xdsctl.events import ServerEvent, events_in

EVENT = {
    "kind": "nacked",
    "at": "2026-07-01T12:01:02.131Z",
    "environment": "default",
    "client": "c",
    "node_id": "n-1",
    "stream": "s",
    "type": "cluster",
    "wildcard": False,
    "version": "w1",
    "names": ["pay", "cart"],
    "name_count": 9,
    "removed": [],
    "errors": [],
    "suspects": ["pay"],
    "code": 13,
    "text": "too\nblue",
}


def test_events__comments_beats_and_cut_ones__are_read_as_the_standard_says() -> None:
    lines = ["event: sent", "id: 1", "data: a", "data: b", "", ": nothing new", "id: 2", "", ":", "", "event: cut"]

    assert list(events_in(lines)) == [ServerEvent("sent", "a\nb", "1"), ServerEvent("message", "", "2")]


def test_line__of_a_nack__says_when_who_what_and_in_which_words() -> None:
    assert tail.line_of(EVENT, wide=False) == (
        "12:01:02.131  nacked      n-1  cluster/pay cluster/cart and 7 more  version w1  too blue"
    )


class Tails(BaseHTTPRequestHandler):
    """Answers with one text after the other, and keeps from which event each was asked for."""

    answers: ClassVar[list[tuple[int, str]]] = []
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers["Last-Event-ID"])
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/problem+json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Standard error is the command's own."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(tail, "_PAUSE_S", 0.0)
    Tails.answers, Tails.asked = [], []
    with ThreadingHTTPServer(("127.0.0.1", 0), Tails) as found:
        Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def told(name: str, number: int, content: object) -> str:
    return f"event: {name}\nid: {number}\ndata: {json.dumps(content)}\n\n"


def test_tail__answer_ends_and_the_broker_is_away_for_a_while__goes_on_where_it_was(server: str) -> None:
    first = told("state", 1, {"processes": 1, "unseen_s": 0}) + told("nacked", 2, EVENT)
    away = {"status": 503, "code": "XDS9003", "detail": "The broker does not answer.", "errors": []}
    again = told("state", 3, {"processes": 2, "unseen_s": 4}) + told("left_out", 4, {"count": 7})
    over = told("end", 5, {"reason": "Your token has ended.", "again": False})
    Tails.answers = [(200, first), (503, json.dumps(away)), (200, again + over)]

    said = CliRunner().invoke(app, ["--server", server, "--token", "t", "tail", "-o", "json"])

    assert Tails.asked == [None, "2", "2"]
    assert json.loads(said.stdout) == EVENT
    assert said.stderr.splitlines() == [
        "Live: 1 ADS process tells.",
        "The broker does not answer. Trying again in 0 s.",
        "For 4 s nothing was seen. Live: 2 ADS processes tell.",
        "7 events were left out: too many at once.",
        "Your token has ended.",
    ]
    assert said.exit_code == 3


def test_tail__broker_is_away_from_the_beginning__one_sentence_and_3(server: str) -> None:
    away = {"status": 503, "code": "XDS9003", "detail": "The broker does not answer.", "errors": []}
    Tails.answers = [(503, json.dumps(away))]

    said = CliRunner().invoke(app, ["--server", server, "--token", "t", "tail"])

    assert (said.exit_code, said.stderr) == (3, "error: The broker does not answer.\n")
