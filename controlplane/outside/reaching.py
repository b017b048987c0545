"""Connections to peers that may be slow on purpose: whatever is waited for ends at one deadline.

A socket's own timeout counts each wait by itself, so that a peer that sends a byte now and then is waited for as long
as it likes. Here each wait is given what is left of the whole, the look-up of the name, the connection, TLS and each
byte alike.
"""

import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

# A look-up cannot be ended from outside: one that hangs keeps its thread. One for each name, and no more than these;
# enough for every channel there may be (`channels.MAX_CHANNELS`), and the mail server.
MAX_LOOKUPS = 128


class Deadline:
    """The end of one try to send a notification, `seconds` from now by a monotonic clock."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._clock() >= self._end

    def left_s(self) -> float:
        """The seconds until the deadline. Raises TimeoutError when it has passed."""
        left = self._end - self._clock()
        if left <= 0:
            raise TimeoutError("the time is up")
        return left


class TimedSocket(socket.socket):
    """A connection on which every read and write gives up at one deadline."""

    deadline: Deadline

    def recv_into(self, *args: Any, **options: Any) -> int:
        """Read into a buffer, as with any socket. Raises TimeoutError at the deadline."""
        self.settimeout(self.deadline.left_s())
        return super().recv_into(*args, **options)

    def sendall(self, *args: Any, **options: Any) -> None:
        """Send all bytes. Raises TimeoutError at the deadline, which holds for the whole call, however many parts it
        sends.
        """
        self.settimeout(self.deadline.left_s())
        super().sendall(*args, **options)


class _TimedTls(ssl.SSLSocket):
    """A TLS connection on which every read and write gives up at one deadline. A plain timeout would begin anew with
    each of OpenSSL's own reads and writes.
    """

    deadline: Deadline

    def recv_into(self, *args: Any, **options: Any) -> int:
        self.settimeout(self.deadline.left_s())
        return super().recv_into(*args, **options)

    def send(self, *args: Any, **options: Any) -> int:
        """Send some of the bytes; `sendall` calls this for each part. Raises TimeoutError at the deadline."""
        self.settimeout(self.deadline.left_s())
        return super().send(*args, **options)

    def do_handshake(self, block: bool = False) -> None:
        self.settimeout(self.deadline.left_s())
        super().do_handshake(block)


class _TimedContext(ssl.SSLContext):
    """A TLS context whose connections take over the deadline of the connection on which they run."""

    sslsocket_class = _TimedTls

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        """Make a TLS connection on `sock`, handshake included. Raises TimeoutError, and ssl.SSLError where the
        certificate is not trusted or is for another name.
        """
        if not isinstance(sock, TimedSocket):
            raise TypeError("only a connection with a deadline is waited for")
        wrapped = super().wrap_socket(sock, *args, **{**options, "do_handshake_on_connect": False})
        try:
            wrapped.deadline = sock.deadline  # type: ignore[attr-defined]  # of `sslsocket_class`
            wrapped.do_handshake()
        except BaseException:
            wrapped.close()
            raise
        return wrapped


def tls_context() -> ssl.SSLContext:
    """A TLS context that trusts the certificate authorities (CA) this machine trusts, checks the peer's name, and keeps
    deadlines.
    """
    context = _TimedContext(ssl.PROTOCOL_TLS_CLIENT)  # demands a certificate, and checks its name
    context.load_default_certs()
    return context


def connected(address: str, port: int, deadline: Deadline) -> TimedSocket:
    """A connection to an IP address, whose reads and writes keep to `deadline`, too. Raises OSError when it fails, and
    TimeoutError (an OSError) at the deadline.
    """
    sock = TimedSocket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.deadline = deadline
        sock.settimeout(deadline.left_s())
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


class Lookups:
    """Runs questions that can only be waited for in threads, with a deadline for whoever asks. Equal questions that are
    asked at the same time run once, and get the same answer.

    A thread whose askers gave up goes on until its question ends. There are never more than `most` threads.
    """

    def __init__(self, most: int = MAX_LOOKUPS) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._asked: dict[object, Future[Any]] = {}

    def answer(self, key: object, question: Callable[[], T], deadline: Deadline) -> T:
        """Run `question` in a thread and return its result, or raise what it raises. `key` is equal for equal
        questions. Raises TimeoutError at the deadline, and OSError when `most` questions are running.
        """
        with self._lock:
            asked: Future[T] | None = self._asked.get(key)
            if asked is None:
                if len(self._asked) >= self._most:
                    raise OSError(f"{self._most} names are being looked up already, and nobody answers")
                asked = self._asked[key] = Future()
                try:
                    threading.Thread(target=self._ask, args=(key, question, asked), daemon=True).start()
                except RuntimeError:
                    del self._asked[key]
                    raise
        return asked.result(deadline.left_s())

    def _ask(self, key: object, question: Callable[[], T], asked: "Future[T]") -> None:
        try:
            found = question()
        except Exception as error:  # noqa: BLE001  whoever asked must hear of it, whatever it is
            self._forget(key)
            asked.set_exception(error)
        else:
            self._forget(key)
            asked.set_result(found)

    def _forget(self, key: object) -> None:
        with self._lock:
            del self._asked[key]


lookups = Lookups()


def addresses_of(host: str, port: int, deadline: Deadline) -> list[str]:
    """The IP addresses of a host name, in the order in which this machine would try them. Raises OSError."""
    found = lookups.answer(host, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), deadline)
    return [str(entry[4][0]) for entry in found]


def failure_words(error: Exception) -> str:
    """Why somebody could not be reached, for people."""
    match error:
        case ConnectionRefusedError():
            return "The connection was refused: nothing listens at this host and port."
        case ConnectionResetError() | BrokenPipeError():
            return "The connection was broken off by the other side."
        case socket.gaierror():
            return f"The name of the host leads nowhere: {error.strerror or error}."
        case ssl.SSLCertVerificationError():
            return f"The certificate of the other side is not trusted: {error}"
        case _:
            return f"{type(error).__name__}: {error}"
