"""Every message type that can be read: the descriptors of xds-protos, loaded once per process when first needed.

Loading takes about half a second and 22 MB (dependencies.md fact 7), so importing `xdscore.schema` does not do it. A
module that cannot be imported (test.v1.simple_pb2 never can) is left out; its types are then unknown, which is an
answer, not a crash.
"""

import importlib
import importlib.metadata
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache, lru_cache

from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import Message

from xdscore.resource_types import RESOURCE_TYPES, TYPE_URL_PREFIX

_DISTRIBUTION = "xds-protos"
_MODULE_SUFFIX = "_pb2.py"
_WELL_KNOWN = ("any", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
# difflib is quadratic in the length of its words; no name or field of the API is longer.
_MAX_GUESS_CHARS = 150


@cache
def descriptors() -> dict[str, Descriptor]:
    """Every known message by full name, nested messages too, in the order of their names."""
    found: dict[str, Descriptor] = {}
    for module in _modules():
        file = getattr(module, "DESCRIPTOR", None)
        if isinstance(file, FileDescriptor):
            for descriptor in file.message_types_by_name.values():
                _collect(descriptor, found)
    return dict(sorted(found.items()))


def _modules() -> Iterator[object]:
    for name in _module_names():
        try:
            yield importlib.import_module(name)
        except (ImportError, TypeError):  # TypeError: the pool refuses a file that clashes with one it has
            continue


def _module_names() -> list[str]:
    files = importlib.metadata.files(_DISTRIBUTION) or []
    names = [str(file).removesuffix(".py").replace("/", ".") for file in files if str(file).endswith(_MODULE_SUFFIX)]
    return sorted(names) + [f"google.protobuf.{name}_pb2" for name in _WELL_KNOWN]


def _collect(descriptor: Descriptor, found: dict[str, Descriptor]) -> None:
    if descriptor.GetOptions().map_entry:
        return
    found[descriptor.full_name] = descriptor
    for nested in descriptor.nested_types:
        _collect(nested, found)


def descriptor_of(full_name: str) -> Descriptor | None:
    """The descriptor of a message; None when no such message is known."""
    return descriptors().get(full_name)


@cache
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


@lru_cache(maxsize=1024)
def nearest_types(type_url: str) -> tuple[str, ...]:
    """The type URLs most like an unknown one, those of resource types first. What follows the last dot is compared
    first, then the whole names.
    """
    name = message_name(type_url)
    short = name.rpartition(".")[2]
    served = [kind.message for kind in RESOURCE_TYPES]
    by_short = _by_short_name()
    words = dict.fromkeys([short, *nearest(short, by_short, 4)])
    ranked = [(rank, full) for rank, word in enumerate(words) for full in by_short.get(word, ())]
    ranked.sort(key=lambda entry: (entry[1] not in served, entry[0], -_common(entry[1], name), entry[1]))
    unique = list(dict.fromkeys(full for _, full in ranked))
    return tuple(TYPE_URL_PREFIX + full for full in unique[:3])


@cache
def _by_short_name() -> dict[str, tuple[str, ...]]:
    """The full names of all messages, by what follows their last dot. The retired v2 API is left out, because it is
    never suggested.
    """
    names: dict[str, list[str]] = {}
    for full in descriptors():
        if "v2" not in full and full.startswith(("envoy.", "xds.", "udpa.", "google.protobuf.")):
            names.setdefault(full.rpartition(".")[2], []).append(full)
    return {short: tuple(full) for short, full in names.items()}


def _common(one: str, other: str) -> int:
    return len(set(one.split(".")) & set(other.split(".")))
