"""One table of exit statuses: in xdsctl.exits, on its page and in --help; and which refusal leads to which."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.stack import ROOT
from tests.support.xdsctl import CONFLICT, NO, NO_ANSWER, NOT_ACCEPTED, NOT_THERE, Xdsctl
from xdsctl.exits import Exit

_ROW = re.compile(r"^\| (\d+) \| (.+) \|$", re.MULTILINE)


@contextmanager
def refusing(status: int, kind: str) -> Iterator[str]:
    """The address of a server that answers every request with this status and type of content."""
    body = json.dumps({"title": "No", "status": status, "code": "XDS9999", "detail": "That is how it is."}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_statuses__page_and_help__say_what_the_code_says() -> None:
    meanings = {status.value: status.meaning for status in Exit}
    section = (ROOT / "docs/reference/xdsctl.md").read_text().partition("## Exit status")[2].partition("\n## ")[0]

    shown = Xdsctl({})("--help").out

    assert {int(number): text.replace("`", "") for number, text in _ROW.findall(section)} == meanings
    for number, text in meanings.items():
        assert f"\n  {number}  {text}\n" in re.sub(r"\n +(?=\d  )", "\n  ", shown), text


def test_statuses__table_of_the_design__has_the_same_numbers() -> None:
    section = (ROOT / "docs/design/texts.md").read_text().partition("| exit status |")[2].partition("\n\n")[0]

    assert [int(number) for number, _ in _ROW.findall(section)] == [status.value for status in Exit]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (404, "application/problem+json", NOT_THERE),
        (410, "application/problem+json", NOT_THERE),
        (401, "application/problem+json", NOT_ACCEPTED),
        (403, "application/problem+json", NOT_ACCEPTED),
        (401, "text/html", NOT_ACCEPTED),
        (422, "application/problem+json", NO),
        (412, "application/problem+json", CONFLICT),
        (500, "application/problem+json", NO_ANSWER),
        (502, "text/html", NO_ANSWER),
        # Another server, or a wrong address: a pipeline must not take it for "it is not there".
        (404, "text/html", NO_ANSWER),
    ],
)
def test_refusal__by_its_status__ends_with_the_status_that_tells_what_to_do(
    status: int, kind: str, expected: int
) -> None:
    with refusing(status, kind) as server:
        said = Xdsctl({"XDSCTL_TOKEN": "t", "XDSCTL_CONFIG": "/nonexistent/contexts.json"})(
            "access", "rules", "--server", server
        )

    assert said.status == expected, said
    assert said.err.startswith("error: ")
