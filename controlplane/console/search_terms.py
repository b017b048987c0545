"""What somebody means who pastes something into the search box. Pure.

An error text holds everything there is to ask: the XDS code, the type and name, the link, and, where gRPC wraps it, the
node id (texts.md F1). Texts are cut, quoted and wrapped on their way through logs, so each part is sought by itself.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qs

from xdscore.resource_types import RESOURCE_TYPES

MAX_CHARS: Final = 4_000

_LINK: Final = re.compile(r"/x\?([A-Za-z0-9%._~+&;=:/-]{1,3000})")
_CODE: Final = re.compile(r"\bXDS\d{4}\b")
_NODE: Final = re.compile(r"\(node ID:([^()]{1,1024})\)")
_WORD_OF: Final = {kind.title: kind.word for kind in RESOURCE_TYPES}
# As codes.toml begins the details of what clients are told.
_SUBJECT: Final = re.compile(
    rf"\b({'|'.join(_WORD_OF)}) '([^'\n]{{1,1024}})'"
    r"(?: (?:is not published in|was removed from) '([a-z0-9-]{1,63})')?"
)


@dataclass(frozen=True, slots=True)
class Terms:
    """What was found in a searched text: an error code, an environment, a type (`word`), a name, a client; each empty
    where the text has none. `text`: all of it, for a plain search.
    """

    text: str
    code: str = ""
    environment: str = ""
    word: str = ""
    name: str = ""
    client: str = ""

    @property
    def asks(self) -> bool:
        """Whether the text names a resource by type and name, so that Explain can answer it."""
        return bool(self.word and self.name)


def terms_of(typed: str) -> Terms:
    """What a text, typed or pasted from a log, says of code, environment, type, name and client."""
    text = typed.strip()[:MAX_CHARS]
    code, node = _CODE.search(text.upper()), _NODE.search(text)
    client = node[1].strip() if node else ""
    found_code = code[0] if code else ""
    link = _LINK.search(text)
    if link:
        given = {key: values[0] for key, values in parse_qs(link[1].rstrip(").,'\"")).items()}
        if given.get("t") and given.get("n"):
            return Terms(text, found_code, given.get("e", ""), given["t"], given["n"], given.get("c", "") or client)
    subject = _SUBJECT.search(text)
    if subject:
        return Terms(text, found_code, subject[3] or "", _WORD_OF[subject[1]], subject[2], client)
    return Terms(text, found_code, client=client)
