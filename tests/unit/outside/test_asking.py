"""One request to a server that the operator named: whole and in time, or an error that says why."""

import pytest

from controlplane.outside.asking import UnansweredError, ask
from controlplane.outside.reaching import Deadline
from tests.support.ports import free_ports
from tests.support.slow_peers import Behaviour, drips, silent, slow_peer
from tests.support.webhook import receiver

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def test_ask__server_inside__is_answered_whole() -> None:
    with receiver() as server:
        server.says = b"[1]"

        answer = ask("POST", server.url, {"X": "1"}, Deadline(5), at_most_bytes=10, body=b"abc")

    assert (answer.status, answer.body) == (200, b"[1]")
    assert (server.received[0].headers["X"], server.received[0].body) == ("1", b"abc")


def test_ask__redirect__is_an_answer_and_is_not_followed() -> None:
    with receiver() as server:
        server.status = 302

        assert ask("POST", server.url, {}, Deadline(5), at_most_bytes=10, body=b"").status == 302
        assert len(server.received) == 1


def test_ask__more_than_may_be__is_no_answer() -> None:
    with receiver() as server:
        server.says = b"x" * 11

        with pytest.raises(UnansweredError, match="more than 10 bytes"):
            ask("POST", server.url, {}, Deadline(5), at_most_bytes=10, body=b"")


# Each goes on for longer than the test may take: it ends because of the deadline, or not at all.
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "behaviour", [silent, drips(HEAD, b"X-Drop: 1\r\n", drops=9_000), drips(HEAD + b"\r\n", b" ", drops=9_000)]
)
def test_ask__server_that_is_slow_on_purpose__ends_at_the_deadline(behaviour: Behaviour) -> None:
    with slow_peer(behaviour) as port, pytest.raises(UnansweredError, match=r"in time|broke off"):
        ask("GET", f"http://127.0.0.1:{port}/", {}, Deadline(0.3), at_most_bytes=1_000_000)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/", "https://127.0.0.1:{port}/", "http://no-such-host.invalid/"]
)
def test_ask__nobody_there__says_so(url: str) -> None:
    (port,) = free_ports(1)

    with pytest.raises(UnansweredError, match=r"cannot be reached|in time"):
        ask("GET", url.format(port=port), {}, Deadline(3), at_most_bytes=10)


def test_ask__name_with_several_addresses__tries_the_next_one() -> None:
    with receiver() as server:
        url = server.url.replace("127.0.0.1", "localhost")

        assert ask("POST", url, {}, Deadline(5), at_most_bytes=10, body=b"").status == 200
