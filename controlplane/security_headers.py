"""What every answer tells the browser that shows it (threats 15 and 22). Set by the outermost middleware."""

from typing import Final

from django.http.response import HttpResponseBase

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
    """Add what the answer does not say for itself."""
    for name, value in _HEADERS.items():
        response.headers.setdefault(name, value)
