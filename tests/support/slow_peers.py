"""Servers on loopback that are slow on purpose: they drip, keep silent, or never read."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Behaviour = Callable[[socket.socket, threading.Event], None]
_DRIP_S = 0.05


@contextmanager
def slow_peer(behave: Behaviour) -> Iterator[int]:
    """Run a server that behaves so towards everybody who connects, until the block ends; yields its port."""
    over = threading.Event()
    server = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(peer: socket.socket) -> None:
        with peer, suppress(OSError):
            behave(peer, over)

    def listen() -> None:
        with suppress(OSError):
            while not over.is_set():
                peer, _ = server.accept()
                threads.append(threading.Thread(target=serve, args=(peer,), daemon=True))
                threads[-1].start()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        yield server.getsockname()[1]
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for thread in (listener, *threads):
            thread.join(5)


def drips(begin: bytes, drop: bytes, *, drops: int = 60) -> Behaviour:
    """A behaviour: say `begin`, then `drop` again and again, quicker than any timeout of a single wait."""

    def behave(peer: socket.socket, over: threading.Event) -> None:
        peer.sendall(begin)
        for _ in range(drops):
            if over.wait(_DRIP_S):
                return
            peer.sendall(drop)

    return behave


def after(answers: list[bytes], then: Behaviour) -> Behaviour:
    """A behaviour: say the first of these at once and each other in answer to a line, and then behave as `then`."""

    def behave(peer: socket.socket, over: threading.Event) -> None:
        for number, answer in enumerate(answers):
            if number:
                peer.recv(4_096)
            peer.sendall(answer)
        then(peer, over)

    return behave


def silent(peer: socket.socket, over: threading.Event) -> None:
    """A behaviour: neither read nor say anything."""
    del peer
    over.wait(3)
