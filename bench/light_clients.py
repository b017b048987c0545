"""Receiving clients that cost little: one epoll loop and frames of HTTP/2 written by hand.

A client of gRPC costs the machine as much as what it measures, so that it hides half of what a server gains. These do
the least that a server takes for a client: preface, settings, one stream, ACKs, answers to pings. Their windows are as
large as they may be, so that no server ever waits for them.
"""

import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from typing import Final

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_FRAME: Final = struct.Struct(">I B I")  # length and type, flags, stream
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS = 1, 1, 4
_INITIAL_WINDOW_SIZE, _MAX_FRAME_SIZE = 4, 5
_WINDOW: Final = 2**31 - 1
_FIRST_WINDOW: Final = 65_535
_STREAM: Final = 1
_PREFIX_BYTES: Final = 5  # before each message of gRPC
_READ_BYTES: Final = 1 << 20
_WAITS_S: Final = 30.0
_EVENTS: Final = 64  # taken at once, before another client connects


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """The bytes of a frame (RFC 9113 section 4.1)."""
    return _FRAME.pack(len(payload) << 8 | kind, flags, stream) + payload


def message_frame(message: bytes) -> bytes:
    """A frame with one message of gRPC, which is not compressed."""
    return frame(_DATA, 0, _STREAM, b"\x00" + struct.pack(">I", len(message)) + message)


def opening(address: str, path: str) -> bytes:
    """What a client says before its first message: who it is, how much it takes, and which method it calls."""
    settings = struct.pack(">HIHI", _INITIAL_WINDOW_SIZE, _WINDOW, _MAX_FRAME_SIZE, 2**24 - 1)
    # Method and scheme are in HPACK's static table (RFC 7541 appendix A); nothing is indexed or compressed.
    fields = {":path": path, ":authority": address, "te": "trailers", "content-type": "application/grpc"}
    headers = b"\x83\x86" + b"".join(b"\x00" + _literal(name) + _literal(value) for name, value in fields.items())
    return b"".join((
        _PREFACE,
        frame(_SETTINGS, 0, 0, settings),
        frame(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _WINDOW - _FIRST_WINDOW)),
        frame(_HEADERS, _END_HEADERS, _STREAM, headers),
    ))  # fmt: skip


def _literal(text: str) -> bytes:
    return bytes((len(text),)) + text.encode()  # all of ours have less than 127 bytes


class LightClient:
    """One client: a connection with one stream. `answer`: makes the bytes of the request that answers a response."""

    def __init__(self, address: str, path: str, first: bytes, answer: Callable[[bytes], bytes]) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=_WAITS_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = answer
        self._read = bytearray()
        self._message = bytearray()
        self.socket.sendall(opening(address, path) + message_frame(first))
        self.socket.setblocking(False)

    def take(self) -> None:
        """Read what came, and answer each response that is complete. Raises ConnectionError when the stream has
        ended.
        """
        data = self.socket.recv(_READ_BYTES)
        if not data:
            raise ConnectionError("a connection was closed")
        read = self._read
        read += data
        at, out = 0, list[bytes]()
        while len(read) - at >= _FRAME.size:
            head, flags, _ = _FRAME.unpack_from(read, at)
            kind, end = head & 0xFF, at + _FRAME.size + (head >> 8)
            if end > len(read):
                break
            payload, at = read[at + _FRAME.size : end], end
            if kind == _DATA:
                self._message += payload
                out += [message_frame(self._answer(response)) for response in self._responses()]
            elif kind == _SETTINGS and not flags & _ACK:
                out.append(frame(_SETTINGS, _ACK, 0, b""))
            elif kind == _PING and not flags & _ACK:
                out.append(frame(_PING, _ACK, 0, bytes(payload)))
            if kind in {_RESET, _GOAWAY} or (kind in {_DATA, _HEADERS} and flags & _END_STREAM):
                raise ConnectionError(f"a stream ended: {bytes(payload)!r}")
        del read[:at]
        if out:
            self.socket.sendall(b"".join(out))

    def _responses(self) -> Iterator[bytes]:
        """The messages that are complete; what is left of the next one is kept."""
        while len(self._message) >= _PREFIX_BYTES:
            end = _PREFIX_BYTES + int.from_bytes(self._message[1:_PREFIX_BYTES], "big")
            if len(self._message) < end:
                return
            response = bytes(self._message[_PREFIX_BYTES:end])
            del self._message[:end]
            yield response


def run(
    clients: Iterator[tuple[float, Callable[[], LightClient]]], control: int, controlled: Callable[[], bool]
) -> None:
    """Run clients until whoever controls them is gone. Each is given as (seconds until it connects, what connects it).

    `control`: the descriptor on which these are told something, and `controlled` what hears it and says whether anybody
    is still there. Raises ConnectionError when a stream ends.
    """
    epoll, there, began = select.epoll(), dict[int, LightClient](), time.monotonic()
    epoll.register(control, select.EPOLLIN)
    following = next(clients, None)
    while True:
        pause_s = _WAITS_S if following is None else max(0.0, began + following[0] - time.monotonic())
        for descriptor, _ in epoll.poll(pause_s, _EVENTS):
            if descriptor != control:
                there[descriptor].take()
            elif not controlled():
                return
        if following is not None and time.monotonic() >= began + following[0]:
            client = following[1]()
            there[client.socket.fileno()] = client
            epoll.register(client.socket, select.EPOLLIN)
            following = next(clients, None)
