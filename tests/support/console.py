"""The console of a running Parley, as somebody who signed in gets it without a browser."""

import urllib.error
import urllib.request
from collections.abc import Mapping
from http.cookiejar import CookieJar
from urllib.parse import quote, urlencode

from tests.support.stack import Parley


class Console:
    """A session of the administrator with the console. Pages are bytes; whatever the status, the page is returned."""

    def __init__(self, parley: Parley, password: str) -> None:
        self._base = f"http://127.0.0.1:{parley.web_port}"
        self._cookies = CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self._cookies))
        self.open("/login")
        self.post("/login", {"username": "admin", "password": password})

    def open(self, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """The page at this path."""
        url = self._base + quote(path, safe="/?&=%:")
        request = urllib.request.Request(url, data, dict(headers or {}))  # noqa: S310 - loopback
        try:
            page: bytes = self._opener.open(request, timeout=30).read()
        except urllib.error.HTTPError as error:
            page = error.read()
        return page

    def post(self, path: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None) -> bytes:
        """The answer to a form that is sent to this path."""
        token = next(cookie.value for cookie in self._cookies if cookie.name.endswith("csrftoken"))
        data = urlencode({**form, "csrfmiddlewaretoken": token}).encode()
        return self.open(path, data, {"Referer": self._base + path, "Origin": self._base, **(headers or {})})
