"""What every answer tells the browser that shows it (threats 15 and 22). Set by the outermost middleware."""

import re
from typing import Final

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from controlplane.clients.foreign_text import DIRECTIONAL, escape

# Nothing from elsewhere, and no script or style within a page: foreign text that slipped through would not run. Forms
# go to this server alone, and nobody may put a page into a frame.
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def security_headers_set(response: HttpResponseBase) -> None:
    """Add the security headers that the answer does not set itself."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)


_TURNS: Final = re.compile(f"[{''.join(sorted(DIRECTIONAL))}\u2028\u2029\x80-\x9f]")
# What is edited, and what a form sends back, stays exact: a field turns nothing outside of itself.
_FIELD: Final = re.compile(r"(<textarea\b.*?</textarea>| value=\"[^\"]*\")", re.DOTALL)


def page_contain(response: HttpResponseBase) -> None:
    """Escape in a page, wherever they stand, the characters that turn the direction of a line: our own words hold
    none.
    """
    if not isinstance(response, HttpResponse) or not response.headers.get("Content-Type", "").startswith("text/html"):
        return
    text = response.content.decode()
    if _TURNS.search(text) is None:
        return
    pieces = _FIELD.split(text)
    pieces[::2] = [escape(piece, keep="\n\r\t") for piece in pieces[::2]]
    response.content = "".join(pieces).encode()
    if response.headers.get("Content-Length"):
        response.headers["Content-Length"] = str(len(response.content))
