"""Decide whom a NACK blames: choose the reader of the client's dialect, then turn the places it found into names.

Contract: interfaces.md section 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from xdscore.nacktext import envoy, grpc_core, grpc_go, grpc_java, grpc_node, grpc_rust, numbered, unknown
from xdscore.nacktext.reading import Nack, Reader


class Dialect(StrEnum):
    """The grammar that a NACK's text is written in, by client family. UNKNOWN: any client could have written it."""

    GRPC_CORE = "grpc-core"
    GRPC_GO = "grpc-go"
    GRPC_JAVA = "grpc-java"
    GRPC_NODE = "grpc-node"
    GRPC_RUST = "grpc-rust"
    ENVOY = "envoy"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Attribution:
    """The resources of a response that a NACK's text blames.

    names: their names, in order of appearance, without repeats; each was in the response; never `""`.
    indexes: their places in the response, counted from 0, in order of appearance, without repeats. A text that says an
      index blames that place; one that says a name blames every place that holds it. A resource without a name is found
      only here.
    complete: False when the text was cut, or when part of it blames nothing in the response. It is about the text
      alone: Envoy stops at the first resource it cannot decode, so a complete text does not clear the others.
    """

    names: tuple[str, ...]
    indexes: tuple[int, ...]
    dialect: Dialect
    complete: bool


# The order matters. Rust's texts start with a name, which may look like any other dialect. Of the two clients that
# share a header, C-core is recognised by what it says, Node by the rest. `unknown`, the last, recognises every text.
READERS: tuple[tuple[Dialect, Reader], ...] = (
    (Dialect.GRPC_RUST, grpc_rust),
    (Dialect.GRPC_CORE, grpc_core),
    (Dialect.GRPC_NODE, grpc_node),
    (Dialect.GRPC_GO, grpc_go),
    (Dialect.GRPC_JAVA, grpc_java),
    (Dialect.ENVOY, envoy),
    (Dialect.UNKNOWN, unknown),
)


def attribute(message: str, *, type_url: str, names: Sequence[str]) -> Attribution:
    """The resources that `message`, the `error_detail.message` of a NACK, blames among `names`, judged by its text
    alone.

    `names` are the resource names of the NACKed response in order: repeats are possible, and `""` stands for a resource
    that has no name because it cannot be decoded. `type_url` is the type of the response. Never raises, whatever the
    text.

    The only resource of a response is blamed even when the text names nothing; `complete` is then False (clients.md
    section 4, design consequences). Not so where the text is about an entry of `resource_errors` (xRFC TP3), which is
    no resource, or was cut before it says what it is about.

    A text may have been cut anywhere, with a mark or without: what is left blames nothing that the whole text does not.
    """
    nack = Nack.of(message, type_url=type_url, names=names)
    dialect, reader = _dialect_of(nack)
    reading = reader.read(nack)
    slots, complete = reading.slots, reading.complete and not nack.by_name.exhausted
    if not slots and not reading.elsewhere and not numbered.stops_before_subject(nack):
        slots, complete = nack.only_resource(), False
    named = (nack.names[slot] for slot in slots)
    return Attribution(
        names=tuple(dict.fromkeys(name for name in named if name != "")),
        indexes=slots,
        dialect=dialect,
        complete=complete,
    )


def _dialect_of(nack: Nack) -> tuple[Dialect, Reader]:
    if grpc_rust.may_stop_inside_name(nack):
        return Dialect.UNKNOWN, unknown
    return next((dialect, reader) for dialect, reader in READERS if reader.recognises(nack))
