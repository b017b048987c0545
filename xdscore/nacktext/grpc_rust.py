"""gRPC-Rust (tonic-xds, on the xds-client crate): `NAME: resource validation failed: TEXT; NAME2: …`, without a header.

NAME is raw. Resources that cannot be decoded are said first and without their names: `top level errors: decode error:
TEXT; decode error: TEXT; NAME: …`. The client walks the resources in order, does not unwrap `Resource`, and does not
read error entries of xRFC TP3. Source: xds-client/src/client/worker.rs and src/error.rs of grpc/grpc-rust.
"""

from xdscore.nacktext.named_list import Form, NamedList
from xdscore.nacktext.reading import Nack, Reading

_BEHIND_NAME = ": resource validation failed: "
_LIST = Form(separator="; ", behind_name=_BEHIND_NAME)
_TOP = "top level errors: "


def recognises(nack: Nack) -> bool:
    """Whether the text starts with a name of the response and the words of grpc-rust, or in a way in which only this
    client starts.

    Ask it before the other families: a name may start as their texts do.
    """
    return _starts_with_entry(nack) or _starts_without_name(nack)


def may_stop_inside_name(nack: Nack) -> bool:
    """Whether the text may come from grpc-rust and have been cut inside its first name.

    Such a text may look like that of any other family, but all of it is a part of a name.
    """
    return nack.by_name.stops_inside(nack.text, 0, _BEHIND_NAME)


def read(nack: Nack) -> Reading:
    """The resources that the entries blame. Top level errors blame none, because the text does not say which resources
    they are about.
    """
    if _starts_with_entry(nack):
        return NamedList(nack, _LIST).read(0)
    return NamedList(nack, _LIST).read_behind_text(0)


def _starts_with_entry(nack: Nack) -> bool:
    return nack.by_name.longest_at(nack.text, 0, _BEHIND_NAME) != ""


def _starts_without_name(nack: Nack) -> bool:
    """Whether the text starts without a name: with a top level error, or with an entry of a resource whose name is
    empty.
    """
    return nack.text.startswith((_TOP, _BEHIND_NAME))
