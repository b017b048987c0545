"""`xdsctl version`, and what it says of servers of other versions."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.xdsctl import DONE, Said, Xdsctl
from xdscore.build import BUILD_VERSION
from xdscore.version import VERSION, Version

HERE = Version.parse(VERSION)
FAR = f"{HERE.major}.{HERE.minor + 2}.0"
NEIGHBOUR = f"{HERE.major}.{HERE.minor + 1}.0+8d8d2a0c11e4"


@contextmanager
def server(told: Mapping[str, str]) -> Iterator[str]:
    """One that tells these versions, by path; whatever else it is asked, it does not know."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            self.send_response(200 if path in told else 404)
            self.send_header("Parley-Version", told[path]) if told.get(path) else None
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def version(told: Mapping[str, str], *, token: str = "t") -> Said:
    with server(told) as address:
        xdsctl = Xdsctl({"XDSCTL_TOKEN": token, "XDSCTL_CONFIG": "/nonexistent/contexts.json"})
        return xdsctl("version", "--server", address, "-o", "json")


@pytest.mark.parametrize("theirs", [BUILD_VERSION, VERSION, NEIGHBOUR], ids=["this build", "its version", "the next"])
def test_version__of_a_neighbour__is_shown_without_a_word(theirs: str) -> None:
    said = version({"/readyz": theirs})

    assert (said.status, said.data, said.err) == (DONE, {"client": BUILD_VERSION, "server": theirs}, "")


def test_version__of_a_server_too_far_apart__is_shown_with_a_warning() -> None:
    said = version({"/readyz": FAR})

    assert (said.status, said.data["server"]) == (DONE, FAR)
    assert said.err == (
        f"warning: xdsctl {BUILD_VERSION} and server {FAR} are too far apart: install the xdsctl of its version.\n"
    )


@pytest.mark.parametrize(("theirs", "token"), [({}, "t"), ({"/readyz": ""}, ""), ({"/readyz": "1.x"}, "t")])
def test_version__server_does_not_say__is_said(theirs: dict[str, str], token: str) -> None:
    said = version(theirs, token=token)

    assert said.status == DONE
    assert "The server does not say which version it is" in said.err


def test_version__readiness_is_hidden_by_a_proxy__is_what_the_api_says() -> None:
    said = version({"/api/v1/environments": VERSION})

    assert (said.data["server"], said.err) == (VERSION, "")


def test_version__for_people__is_two_lines_and_harmless() -> None:
    with server({"/readyz": f"{VERSION}\x1b[31m"}) as address:
        said = Xdsctl({})("version", "--server", address)

    assert said.out.splitlines()[0] == f"xdsctl {BUILD_VERSION}"
    assert "\x1b" not in said.out + said.err
