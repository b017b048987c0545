"""Connections under one deadline, and look-ups that nobody can end."""

import socket
import threading
import time

import pytest

from controlplane.outside.reaching import Deadline, Lookups, connected, tls_context
from tests.support.slow_peers import silent, slow_peer
from tests.support.waiting import eventually


def test_deadline__passed__nothing_is_waited_for() -> None:
    now = 0.0
    deadline = Deadline(2.0, clock=lambda: now)

    assert (deadline.left_s(), deadline.passed) == (2.0, False)
    now = 2.0
    assert deadline.passed
    with pytest.raises(TimeoutError):
        deadline.left_s()


def test_connection__to_a_peer_that_never_reads__writing_ends_at_the_deadline() -> None:
    begun = time.monotonic()
    with (
        slow_peer(silent) as port,
        connected("127.0.0.1", port, Deadline(0.3)) as connection,
        pytest.raises(TimeoutError),
    ):
        connection.sendall(b"x" * 50_000_000)
    assert time.monotonic() - begun < 1.5


def test_tls__around_a_connection_without_a_deadline__is_refused() -> None:
    with socket.socket() as plain, pytest.raises(TypeError, match="deadline"):
        tls_context().wrap_socket(plain, server_hostname="hooks.example")


def test_lookups__many_ask_for_a_name_that_hangs__one_thread_waits_and_others_are_answered() -> None:
    answered = threading.Event()
    asked: list[str] = []

    def hang() -> str:
        asked.append("slow")
        answered.wait(5)
        return "late"

    lookups = Lookups(most=2)
    for _ in range(5):
        with pytest.raises(TimeoutError):
            lookups.answer("slow", hang, Deadline(0.02))

    assert asked == ["slow"]
    assert lookups.answer("quick", lambda: "at once", Deadline(5)) == "at once"
    answered.set()
    assert lookups.answer("slow", lambda: "late", Deadline(5)) == "late"


def test_lookups__as_many_as_may_hang__the_next_is_refused_until_one_ends() -> None:
    answered = threading.Event()
    lookups = Lookups(most=2)

    def hang() -> bool:
        return answered.wait(5)

    before = threading.active_count()
    for name in ("a", "b"):
        with pytest.raises(TimeoutError):
            lookups.answer(name, hang, Deadline(0.02))

    with pytest.raises(OSError, match="2 names are being looked up"):
        lookups.answer("c", hang, Deadline(5))

    assert threading.active_count() - before == 2
    answered.set()
    eventually(lambda: lookups.answer("c", lambda: True, Deadline(5)), within_s=5)


def test_lookups__question_fails__everybody_who_asked_hears_it() -> None:
    def fail() -> None:
        raise socket.gaierror("no such name")

    with pytest.raises(socket.gaierror, match="no such name"):
        Lookups().answer("a", fail, Deadline(5))
