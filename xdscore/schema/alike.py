"""Which messages of a list are alike but for what their texts say, at a glance: what costs little for one of them, and
much for ten thousand, is done once for each kind.

By the text form of protobuf, which is written without Python: names and values, one on a line. Pure.
"""

import re
from collections.abc import Sequence
from typing import Final

from xdscore.schema.walk import AnyMessage

_AT_ONCE: Final = 1_000  # so that the text of one list after the other is in memory, and not that of all
_END: Final = "\0"  # stands in no text form, which writes it as an escape
# They are never folded, need no line of their own as a key, and have nothing that is escaped.
_ALL_PLAIN: Final = re.compile(r"[!-\[\]-~]+").fullmatch
_MAX_PLAIN: Final = 100
# In an Any, what it holds is a text, too, and of what type it is.
_PACKED: Final = "type_url: "
_HELD: Final = ("value: ", _PACKED)


def alike(messages: Sequence[AnyMessage]) -> list[str]:
    """A key for each of the messages, in order: those with one key have the same fields and values, but for texts that
    are printable ASCII without blanks, of 1 to 100 characters; these may differ.
    """
    starts = range(0, len(messages), _AT_ONCE)
    return [key for start in starts for key in _keys(messages[start : start + _AT_ONCE])]


def _keys(messages: Sequence[AnyMessage]) -> Sequence[str]:
    whole = _END.join(map(str, messages))
    if "\\" in whole:
        whole = whole.replace("\\\\", "\\p").replace('\\"', "\\q")
    pieces = whole.split('"')  # names and values, and between them texts
    texts = pieces[1::2]
    if _PACKED in whole:
        before = pieces[::2]
        texts = [text if before[number].endswith(_HELD) else _shape_of(text) for number, text in enumerate(texts)]
    elif _all_plain(texts):
        return '"_"'.join(pieces[::2]).split(_END)
    else:
        texts = [*map(_shape_of, texts)]
    pieces[1::2] = texts
    return '"'.join(pieces).split(_END)


def _all_plain(texts: Sequence[str]) -> bool:
    """Whether all of the texts may differ, at one look."""
    return _ALL_PLAIN("".join(texts)) is not None and "" not in texts and max(map(len, texts)) <= _MAX_PLAIN


def _shape_of(text: str) -> str:
    return "_" if len(text) <= _MAX_PLAIN and _ALL_PLAIN(text) else text
