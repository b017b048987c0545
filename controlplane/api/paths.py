"""Paths in which a part may hold anything: names of resources contain `/`, `?` and `%`, type URLs contain `/` (texts.md
section 4).

A server decodes a path before Django routes it, and `a%2Fb` becomes two parts. So the API is routed on the path as it
was sent (`encoded_path`), and each converter decodes its own part. A name whose slashes were not encoded is understood
as well; encoded, it is beyond doubt, even where it ends in a word that is a path of ours (`a%2Frevisions`).
"""

from typing import Final
from urllib.parse import quote, unquote

from django.http import HttpRequest
from django.urls import register_converter

PREFIX: Final = "/api/v1/"
# What may stand in a path as it is (RFC 3986 section 3.3), and the slash between its parts.
_PATH_CHARS: Final = "/:@!$&'()*+,;=~"


def encoded_path(request: HttpRequest) -> str:
    """The path of the request as it was sent, percent-encoded. Under a server that keeps only the decoded path,
    everything in that but slashes is encoded again.
    """
    raw = getattr(request, "scope", {}).get("raw_path")  # ASGI; only its HTTP requests have a scope
    if isinstance(raw, bytes) and raw:
        return raw.partition(b"?")[0].decode("ascii", "replace")
    return quote(request.path_info, safe=_PATH_CHARS)


def path_to(*parts: str) -> str:
    """A path of the API made of these parts, each percent-encoded."""
    return PREFIX + "/".join(quote(part, safe="") for part in parts)


class Part:
    """A Django path converter for one part of a path between slashes. Views get it percent-decoded."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        """The part of the path, percent-decoded. Raises ValueError when it is not UTF-8; Django then answers that there
        is no such path.
        """
        return unquote(value, errors="strict")

    def to_url(self, value: str) -> str:
        """The part of the path, percent-encoded."""
        return quote(value, safe="")


class TypePart(Part):
    """A path converter for a resource type: its word, or its type URL, which has a slash in it."""

    regex = r"type\.googleapis\.com/[^/]+|[^/]+"


class Rest(Part):
    """A path converter for the rest of a path, slashes included; a route may have a fixed text behind it."""

    regex = ".+"


register_converter(Part, "part")
register_converter(TypePart, "type")
register_converter(Rest, "rest")

ENVIRONMENT_PATH: Final = "environments/<part:environment_key>"
"""The path of an environment, and how the paths below it begin."""
