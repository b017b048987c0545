"""What a request has to be that somebody asks about: the bounds and shapes that the API, pages and log lines share."""

import re
from typing import Final

SCHEMES: Final = ("http", "https")
MAX_HEADERS: Final = 100
MAX_NAME_CHARS: Final = 256
"""Of a header's name."""
MAX_VALUE_CHARS: Final = 8_192
"""Of a header's value, and of a path: proxies take 60 KiB of headers by default, and a path is one of them."""
MAX_ID_CHARS: Final = 1_024
"""Of an authority, of the name of a listener, and of what names a client."""
MAX_METHOD_CHARS: Final = 32
MAX_EPOCH: Final = 10**18
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)  # RFC 9110 section 5.6.2
_NOT_OF_AUTHORITY: Final = frozenset("/?#@ ")


def path_problem(path: str) -> str:
    """Why no request has this path, as a sentence; empty where one may."""
    return "" if path.startswith("/") else "This must begin with '/'."


def method_problem(method: str) -> str:
    """Why no request has this method, as a sentence; empty where one may."""
    return "" if _TOKEN.fullmatch(method) else "This must be a method such as GET."


def authority_problem(authority: str) -> str:
    """Why no request has this authority, as a sentence; empty where one may."""
    if authority and _NOT_OF_AUTHORITY.isdisjoint(authority):
        return ""
    return "This must be a host, with ':' and a port where there is one."


def header_problem(name: str, value: str) -> str:
    """Why no request has this header, as a sentence; empty where one may."""
    if len(name) > MAX_NAME_CHARS or not _TOKEN.fullmatch(name):
        return "A header's name has letters, digits and hyphens, and no colon before it."
    if len(value) > MAX_VALUE_CHARS or not value.isprintable():
        return f"A header's value has at most {MAX_VALUE_CHARS} characters, on one line."
    return ""
