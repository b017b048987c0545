"""Answers for types that the table does not have: a name is told NOT_FOUND, the stream goes on (protocol.md A5, F21).

Pure: one object per stream, made when a stream first asks for such a type. Nothing queues: names to be told are merged
per type.
"""

from dataclasses import dataclass, field

from adsserver.engine.subscription import memory_of
from adsserver.wire.discovery import UnknownTypeRequest
from xdscore.codes import CATALOGUE
from xdscore.errors import MAX_TEXT_CHARS, ResourceError, StatusCode
from xdscore.limits import Limits
from xdscore.snapshot import content_hash

# More unknown types than the whole table has known ones is no newer client any more.
MAX_TYPES = 16

_ROW = CATALOGUE["XDS2107"]
_SHOWN_CHARS = 100


class TooManyTypesError(Exception):
    """The stream asked for more unknown types than a real client could know. The text is sent to the client
    (RESOURCE_EXHAUSTED).
    """


@dataclass(frozen=True, slots=True)
class UnsupportedAnswer:
    """A response that holds errors only. Its version is made from these errors (protocol.md F7)."""

    type_url: str
    nonce: str
    version: str
    errors: tuple[ResourceError, ...]


@dataclass(slots=True)
class _TypeState:
    told: frozenset[str] = frozenset()
    pending: dict[str, None] = field(default_factory=dict)
    name_bytes: int = 0
    nonce: str = ""


class UnsupportedTypes:
    """The names that one stream subscribes to of types that this server does not know, and the responses that are due
    for them.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._types: dict[str, _TypeState] = {}
        self._answers = 0

    def receive_sotw(self, request: UnknownTypeRequest) -> None:
        """Take the full list of names of a SotW request. A stale request is ignored (B3); a list without new names
        needs no answer (B7).

        When a name is new, all names of the list are answered again: a response may have to be complete in a type that
        nobody here knows (F9).
        """
        state = self._state(request.type_url)
        if request.nonce and request.nonce != state.nonce:
            return
        names = _nameable(request.names)
        if names.keys() - state.told:
            state.pending = names
        state.told = frozenset(names)
        state.name_bytes = memory_of(names)

    def receive_delta(self, request: UnknownTypeRequest) -> None:
        """Take the names that a delta request subscribes to. Each of them is answered, even if it was answered before
        (C6).
        """
        state = self._state(request.type_url)
        state.pending |= _nameable(request.names)
        if len(state.pending) > self._limits.names_per_type:
            raise TooManyTypesError(f"More than {self._limits.names_per_type} names of one type are subscribed.")
        state.name_bytes = memory_of(state.pending)

    @property
    def name_bytes(self) -> int:
        """The memory that the subscribed names take, in bytes."""
        return sum(state.name_bytes for state in self._types.values())

    def take(self) -> UnsupportedAnswer | None:
        """The next response to write, which is then treated as sent; None when there is none."""
        for type_url, state in self._types.items():
            if state.pending:
                names, state.pending = tuple(state.pending), {}
                state.name_bytes = memory_of(state.told)
                self._answers += 1
                # "u" keeps these nonces apart from the decimal ones of the session (B1).
                state.nonce = f"u{self._answers}"
                version = content_hash("\0".join(sorted(names)).encode()).hex()
                return UnsupportedAnswer(
                    type_url, state.nonce, version, tuple(_error(type_url, name) for name in names)
                )
        return None

    def _state(self, type_url: str) -> _TypeState:
        state = self._types.get(type_url)
        if state is None:
            if len(self._types) == MAX_TYPES:
                raise TooManyTypesError(f"More than {MAX_TYPES} types that this server does not know were asked for.")
            state = self._types[type_url] = _TypeState()
        return state


def _nameable(names: tuple[str, ...]) -> dict[str, None]:
    # No entry is ever named "" or "*" (protocol.md C10, reliability T8).
    return {name: None for name in names if name not in {"", "*"}}


def _error(type_url: str, name: str) -> ResourceError:
    sentence = _ROW.detail.format(name=_shown(name), type=_shown(type_url))
    text = f"{_ROW.status} [{_ROW.code}] {sentence}"
    return ResourceError(name, StatusCode[_ROW.status], _ROW.code, text[:MAX_TEXT_CHARS])


def _shown(text: str) -> str:
    cut = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return "".join(character if character.isprintable() else " " for character in cut)
