"""Every message type that can be read: the schema of this process, made when first needed.

Importing `xdscore.schema` does not make it. It is the one that Parley brings along (`shipped`) until a process is told
another one (`use`); whoever remembers something of a schema does so by `kept`.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import _lru_cache_wrapper, lru_cache
from typing import TypeVar

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from xdscore.resource_types import RESOURCE_TYPES, TYPE_URL_PREFIX
from xdscore.schema import shipped
from xdscore.schema.pool import Schema, schema_of

# difflib is quadratic in the length of its words; no name or field of the API is longer.
_MAX_GUESS_CHARS = 150
# More than a schema has messages, and a bound on what unknown names leave behind.
_MAX_KEPT = 16_384

R = TypeVar("R")


class _Current:
    """The schema of this process; None until somebody asks for it."""

    schema: Schema | None = None


_current = _Current()
_kept: "list[_lru_cache_wrapper[object]]" = []


def schema() -> Schema:
    """The schema of this process."""
    if _current.schema is None:
        # Threads that ask first at the same time may each make one: they are alike.
        _current.schema = schema_of(shipped.standard())
    return _current.schema


def use(new: Schema) -> None:
    """Read and write by this schema from now on. What other threads are reading they finish by the one before."""
    _current.schema = new
    for each in _kept:
        each.cache_clear()


def kept(function: "Callable[..., R]") -> "_lru_cache_wrapper[R]":
    """A decorator like `functools.cache`, for what follows from a schema: forgotten when another one is used, so that
    the one before does not stay in memory. What is asked must say of which schema it is, by a descriptor or the schema.
    """
    remembered: _lru_cache_wrapper[R] = lru_cache(_MAX_KEPT)(function)
    _kept.append(remembered)
    return remembered


def descriptors() -> dict[str, Descriptor]:
    """Every known message by full name, nested messages too, in the order of their names."""
    return schema().messages


def descriptor_of(full_name: str) -> Descriptor | None:
    """The descriptor of a message; None when no such message is known."""
    return descriptors().get(full_name)


@kept
def class_of(descriptor: Descriptor) -> type[Message]:
    """The Python class of a message."""
    return message_factory.GetMessageClass(descriptor)


def new_message(full_name: str) -> Message:
    """An empty message of a known type. Raises KeyError for an unknown one."""
    return class_of(descriptors()[full_name])()


def message_name(type_url: str) -> str:
    """The full message name that a type URL names: what follows its last slash, as every implementation reads it."""
    return type_url.rpartition("/")[2]


def nearest(word: str, choices: Iterable[str], count: int = 3) -> list[str]:
    """The choices most like `word`, best first, `count` at most; none when nothing is like it."""
    if len(word) > _MAX_GUESS_CHARS:
        return []
    return get_close_matches(word, sorted(choices), n=count, cutoff=0.6)


def nearest_types(type_url: str) -> tuple[str, ...]:
    """The type URLs most like an unknown one, those of resource types first. What follows the last dot is compared
    first, then the whole names.
    """
    return _nearest_types(schema(), type_url)


@kept
def _nearest_types(known: Schema, type_url: str) -> tuple[str, ...]:
    name = message_name(type_url)
    short = name.rpartition(".")[2]
    served = [kind.message for kind in RESOURCE_TYPES]
    by_short = _by_short_name(known)
    words = dict.fromkeys([short, *nearest(short, by_short, 4)])
    ranked = [(rank, full) for rank, word in enumerate(words) for full in by_short.get(word, ())]
    ranked.sort(key=lambda entry: (entry[1] not in served, entry[0], -_common(entry[1], name), entry[1]))
    unique = list(dict.fromkeys(full for _, full in ranked))
    return tuple(TYPE_URL_PREFIX + full for full in unique[:3])


@kept
def _by_short_name(known: Schema) -> dict[str, tuple[str, ...]]:
    """The full names of all messages, by what follows their last dot. The retired v2 API is left out, because it is
    never suggested.
    """
    names: dict[str, list[str]] = {}
    for full in known.messages:
        if "v2" not in full and full.startswith(("envoy.", "xds.", "udpa.", "google.protobuf.")):
            names.setdefault(full.rpartition(".")[2], []).append(full)
    return {short: tuple(full) for short, full in names.items()}


def _common(one: str, other: str) -> int:
    return len(set(one.split(".")) & set(other.split(".")))
