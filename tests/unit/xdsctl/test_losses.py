"""What xdsctl says and does where the server refuses a write because connected clients would lose something."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.xdsctl import CONFLICT, DONE, LOSS, Said, Xdsctl
from xdsctl.losses import command_again, dry_run_lines, foreseen_lines

REASON = ("--reason", "drill")
WRITES = {
    "delete": ("delete", "cluster", "pay"),
    "apply": ("apply", "-f", "-", "--owner", "shop", "--prune"),
    "undo": ("rollout", "undo", "--to", "7", *REASON),
    "quarantine": ("incidents", "quarantine", "abc", *REASON),
}
MADE = {"id": "c1", "edit_count": 1, "findings": []}


def loss(clients: int = 12, **members: Any) -> dict[str, Any]:
    whole = {
        "clients": clients,
        "connected": 40,
        "kinds": {"envoy 1.40": 10, "grpc-go 1.70": 2},
        "names": [{"type": "cluster", "name": f"c{number}", "clients": clients} for number in range(7)],
        "truncated": False,
        "doubtful": 0,
        "who": [{"client": f"id{number}", "node_id": f"n{number}", "kind": "envoy 1.40"} for number in range(6)],
        "asks": True,
    }
    return whole | members


@contextmanager
def guarding(*losing: int, code: str = "XDS3013") -> Iterator[tuple[str, list[str | None]]]:
    """A server that takes a write which accepts the loss of so many clients, each number for one refusal, the last one
    for ever; and what was accepted in each request that writes.
    """
    accepted: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"name": "pay"})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            given = parse_qs(urlsplit(self.path).query).get("accept_loss", [None])[0]
            clients = losing[min(len(accepted), len(losing) - 1)]
            accepted.append(given)
            if int(given or 0) >= clients:
                self._answer(202, MADE)
            else:
                problem = {"status": 409, "code": code, "title": "Loss", "detail": "No.", "errors": []}
                self._answer(409, {**problem, "loss": loss(clients)}, "application/problem+json")

        do_DELETE = do_POST  # noqa: N815 - http.server's name

        def _answer(self, status: int, content: object, media: str = "application/json") -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("ETag", '"r1"')
            self.send_header("Content-Type", media)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", accepted
        server.shutdown()


def variables(server: str) -> dict[str, str]:
    return {"XDSCTL_SERVER": server, "XDSCTL_TOKEN": "t", "XDSCTL_CONFIG": "/nonexistent/contexts.json"}


def run(server: str, *arguments: str) -> Said:
    return Xdsctl(variables(server))(*arguments, stdin="type: cluster\nname: a\n")


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write__would_lose__6_with_who_what_and_the_command_that_accepts_it(write: Sequence[str]) -> None:
    with guarding(12) as (server, accepted):
        refused = run(server, *write)
        done = run(server, *write, "--accept-loss", "12")

    assert (refused.status, refused.out) == (LOSS, "")
    assert refused.err.splitlines()[-4:] == [
        "error: 12 of 40 connected clients would lose something (10 envoy 1.40, 2 grpc-go 1.70). Nothing was changed.",
        "What: cluster/c0 (12), cluster/c1 (12), cluster/c2 (12), cluster/c3 (12), cluster/c4 (12) and 2 more",
        "Who: n0 (envoy 1.40), n1 (envoy 1.40), n2 (envoy 1.40), n3 (envoy 1.40), n4 (envoy 1.40) and 7 more",
        f"To do it nevertheless: xdsctl {' '.join(write)} --accept-loss 12",
    ]
    assert (done.status, accepted) == (DONE, [None, "12"])


def test_write__json_would_lose__is_the_problem_with_the_loss() -> None:
    with guarding(12) as (server, _):
        said = run(server, "-o", "json", *WRITES["delete"])

    assert said.status == LOSS
    assert (said.data["code"], said.data["loss"]["clients"]) == ("XDS3013", 12)


def test_write__fewer_accepted_than_lose__says_how_many_were() -> None:
    with guarding(12) as (server, accepted):
        said = run(server, *WRITES["delete"], "--accept-loss=3")

    assert (said.status, accepted) == (LOSS, ["3"])
    assert "You accepted 3. Nothing was changed." in said.err
    assert said.err.splitlines()[-1].endswith(": xdsctl delete cluster pay --accept-loss 12")


def test_write__another_conflict__stays_4() -> None:
    with guarding(12, code="XDS3009") as (server, accepted):
        said = run(server, *WRITES["delete"])

    assert (said.status, len(accepted)) == (CONFLICT, 1)


def typed(server: str, *lines: str) -> tuple[int, str]:
    """How a delete ends, and what it says, where somebody at a terminal types these lines."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xdsctl", *WRITES["delete"]]
    environment = {**os.environ, **variables(server), "NO_COLOR": "1"}
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        for line in lines:
            questions = said.count(b"type the number of clients")
            while said.count(b"type the number of clients") == questions or not said.endswith(b": "):
                said += os.read(ours, 4096)
            os.write(ours, f"{line}\n".encode())
        try:
            while more := os.read(ours, 4096):
                said += more
        except OSError:
            """Linux says so where the other side is closed."""
        status = process.wait(20)
    os.close(ours)
    return status, said.decode()


def test_write__number_typed_at_a_terminal__is_done() -> None:
    with guarding(12) as (server, accepted):
        status, said = typed(server, "12")

    assert (status, accepted) == (DONE, [None, "12"])
    assert "Who: n0 (envoy 1.40)" in said
    assert "type the number of clients, 12:" in said


@pytest.mark.parametrize("answer", ["", "y", "13"])
def test_write__anything_else_typed__6_and_not_sent_again(answer: str) -> None:
    with guarding(12) as (server, accepted):
        status, said = typed(server, answer)

    assert (status, accepted) == (LOSS, [None])
    assert f"'{answer}' is not 12. Nothing was changed." in said


def test_write__more_clients_meanwhile__asks_again() -> None:
    with guarding(12, 13) as (server, accepted):
        status, said = typed(server, "12", "13")

    assert (status, accepted) == (DONE, [None, "12", "13"])
    assert "You accepted 12." in said


def test_lines__doubt_and_more_names_than_are_told__say_so() -> None:
    told = foreseen_lines(loss(2, connected=1, doubtful=1, truncated=True))

    assert told[0] == "2 of 1 connected client would lose something (10 envoy 1.40, 2 grpc-go 1.70)."
    assert told[1] == "Not certain: 1 of them, which are counted because nobody can know."
    assert told[2].endswith("cluster/c4 (2) and more than 2 more")


def test_dry_run__nothing_lost_or_not_known__says_nothing() -> None:
    assert dry_run_lines(loss(0, asks=False)) == ()
    assert dry_run_lines(None) == ()


def test_dry_run__below_and_at_the_threshold__says_whether_apply_asks() -> None:
    assert dry_run_lines(loss(2))[-1] == "'xdsctl apply' will ask for --accept-loss 2."
    assert dry_run_lines(loss(2, asks=False)) == foreseen_lines(loss(2))


@pytest.mark.parametrize(
    ("typed_words", "again"),
    [
        ("delete cluster pay", "xdsctl delete cluster pay --accept-loss 3"),
        ("delete cluster pay --accept-loss 1", "xdsctl delete cluster pay --accept-loss 3"),
        ("--token secret delete cluster pay", "xdsctl --token TOKEN delete cluster pay --accept-loss 3"),
        ("delete cluster pay --token=secret", "xdsctl delete cluster pay --token TOKEN --accept-loss 3"),
        ("delete cluster -- -pay", "xdsctl delete cluster --accept-loss 3 -- -pay"),
        ("delete cluster $pay", "xdsctl delete cluster '$pay' --accept-loss 3"),
    ],
)
def test_command_again__as_typed__accepts_the_loss_and_holds_no_secret(typed_words: str, again: str) -> None:
    assert command_again(typed_words.split(" "), 3) == again
