"""The demo's pipeline: a few REST calls with the administrator's token."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

Body = dict[str, object]


class RestError(Exception):
    """The API answered with a problem document, which is the text."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Calls the REST API. `base` is the console's URL; the administrator's token is read anew for each call, since the
    supervisor may replace it. `token` is somebody else's.
    """

    base: str
    token_file: Path
    token: str = ""

    def as_token(self, token: str) -> "Rest":
        """A caller of the same API with this token."""
        return replace(self, token=token)

    def get(self, path: str, **query: str) -> Body:
        """GET this path below /api/v1; the body of the answer."""
        return self._call("GET", f"{path}?{urllib.parse.urlencode(query)}" if query else path, None)

    def post(self, path: str, body: Body) -> Body:
        """POST this body to the path below /api/v1; the body of the answer."""
        return self._call("POST", path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        """DELETE this path below /api/v1."""
        self._call("DELETE", path, None)

    def published(self, change: str) -> None:
        """Wait until the change is published, for at most 20 s."""
        self.get(f"/changes/{change}", wait="20s", **{"for": "published"})

    def await_ready(self, within_s: float) -> None:
        """Wait until the web process serves. Raises TimeoutError after so many seconds."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(f"{self.base}/readyz", timeout=2):  # noqa: S310 - our own http:// address
                    return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(f"{self.base} is not ready after {within_s:g} s")

    def _call(self, method: str, path: str, data: bytes | None) -> Body:
        request = urllib.request.Request(f"{self.base}/api/v1{path}", data=data, method=method)  # noqa: S310 - as above
        request.add_header("Authorization", f"Bearer {self.token or self.token_file.read_text().strip()}")
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=40) as answer:  # noqa: S310 - as above
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise RestError(f"{method} {path}: {error.read().decode(errors='replace')}") from error
        body: Body = json.loads(text) if text else {}
        return body
