"""Which servers xdsctl trusts, and what it says of one that it does not; over real TLS."""

import datetime as dt
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.certificates import Authority
from tests.support.xdsctl import DONE, NOT_ACCEPTED, USAGE, Xdsctl

OURS = Authority("ours")
THEIRS = Authority("theirs")
BETWEEN = Authority("between", above=OURS)
DAY = dt.timedelta(days=1)


class Handler(BaseHTTPRequestHandler):
    """Answers every list with none, and keeps what it was told."""

    told: list[str] = []

    def do_GET(self) -> None:
        self.told.append(self.path)
        if self.path.endswith("/environments/default"):
            self.send_error(404)
            return
        body = json.dumps({"count": 0, "next": None, "results": []}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Says nothing."""


@contextmanager
def serving(folder: Path, pair: tuple[bytes, bytes], *between: Authority) -> Iterator[str]:
    """The address of a server that shows this certificate, and those of the authorities between."""
    key, chain = folder / "key.pem", folder / "chain.pem"
    key.write_bytes(pair[0])
    chain.write_bytes(b"".join([pair[1], *(each.pem() for each in between)]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    Handler.told.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"https://localhost:{server.server_port}"
        server.shutdown()


def pem(folder: Path, authority: Authority) -> str:
    path = folder / f"{authority.name}.pem"
    path.write_bytes(authority.pem())
    return str(path)


@pytest.fixture
def xdsctl(tmp_path: Path) -> Xdsctl:
    return Xdsctl({"XDSCTL_TOKEN": "t0ken", "XDSCTL_CONFIG": str(tmp_path / "contexts.json"), "XDSCTL_CACERT": ""})


def test_cacert__as_option_variable_and_in_a_context__is_what_the_server_is_judged_by(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    ours = pem(tmp_path, OURS)
    with serving(tmp_path, OURS.issue(common_name="server", dns="localhost")) as server:
        put = xdsctl("context", "set", "there", "--url", server, "--default-cacert", ours, "-o", "json")
        said = [
            xdsctl("environments", "--server", server, "--cacert", ours),
            xdsctl("--cacert", ours, "clients", "list", f"--server={server}"),
            xdsctl("incidents", "list", "--server", server, XDSCTL_CACERT=ours),
            xdsctl("environments", "--context", "there"),
            xdsctl("login", "there", stdin="other\n"),
        ]

    assert [each.status for each in (put, *said)] == [DONE] * 6, said
    (listed,) = xdsctl("context", "list", "-o", "json").data
    assert (listed["cacert"], listed["token"]) == (ours, True)


def test_private_authority__in_the_store_of_the_machine__is_trusted_as_by_other_tools(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    store.mkdir()
    pem(store, OURS)
    subprocess.run(["openssl", "rehash", str(store)], check=True, timeout=10)
    elsewhere = {"SSL_CERT_FILE": pem(tmp_path, THEIRS), "SSL_CERT_DIR": str(store)}
    with serving(tmp_path, OURS.issue(common_name="server", dns="localhost")) as server:
        said = xdsctl("environments", "--server", server, **elsewhere)

    assert said.status == DONE, said.err


@pytest.mark.parametrize("between", [(), (BETWEEN,)], ids=["root", "between"])
@pytest.mark.parametrize("trusting", [None, THEIRS], ids=["machine", "another"])
def test_private_authority__not_trusted__says_which_and_how_and_sends_nothing(
    xdsctl: Xdsctl, tmp_path: Path, between: tuple[Authority, ...], trusting: Authority | None
) -> None:
    signer = between[0] if between else OURS
    given = () if trusting is None else ("--cacert", pem(tmp_path, trusting))
    with serving(tmp_path, signer.issue(common_name="server", dns="localhost"), *between) as server:
        said = xdsctl("environments", "--server", server, *given)

    assert said.status == NOT_ACCEPTED
    assert said.err.count("\n") == 1
    assert f"The certificate of {server} was signed by 'CN={signer.name}', which" in said.err
    assert (f"'{given[1]}' does not hold" if given else "this machine does not trust") in said.err
    assert "--cacert FILE or XDSCTL_CACERT" in said.err
    assert Handler.told == []


@pytest.mark.parametrize(
    ("dns", "ends", "why"), [("localhost", -DAY, "expired"), ("elsewhere.example", DAY, "localhost")]
)
def test_certificate__expired_or_of_another_name__says_so_and_names_no_option_that_would_not_help(
    xdsctl: Xdsctl, tmp_path: Path, dns: str, ends: dt.timedelta, why: str
) -> None:
    pair = OURS.issue(common_name="server", dns=dns, begins=-2 * DAY, ends=ends)
    with serving(tmp_path, pair) as server:
        said = xdsctl("environments", "--server", server, "--cacert", pem(tmp_path, OURS))

    assert said.status == NOT_ACCEPTED
    assert "is not accepted: " in said.err
    assert why in said.err.partition("is not accepted: ")[2]
    assert "XDSCTL_CACERT" not in said.err


def test_cacert__file_that_is_not_there_or_no_certificate__is_wrong_usage(xdsctl: Xdsctl, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no certificate")

    for name, why in (("nowhere", "cannot be read: No such file"), ("text", "holds no certificate in PEM")):
        path = str(tmp_path / name)
        said = xdsctl("environments", "--server", "https://localhost:1", "--cacert", path)
        put = xdsctl("context", "set", "there", "--url", "https://localhost:1", "--default-cacert", path)
        assert (said.status, put.status) == (USAGE, USAGE)
        assert f"'{path}'" in said.err
        assert why in said.err


def test_contexts__of_the_xdsctl_before__are_read_and_what_is_not_said_is_not_written(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    file = tmp_path / "contexts.json"
    before = {"server": "https://a.example", "token": "t", "environment": ""}
    file.write_text(json.dumps({"current": "a", "contexts": {"a": before}}))

    said = xdsctl("context", "set", "b", "--url", "https://b.example")

    assert said.status == DONE
    kept = json.loads(file.read_text())["contexts"]
    assert kept == {"a": {"server": "https://a.example", "token": "t"}, "b": {"server": "https://b.example"}}


def test_doctor__server_that_is_not_trusted__fails_at_the_certificate_with_8(xdsctl: Xdsctl, tmp_path: Path) -> None:
    with serving(tmp_path, OURS.issue(common_name="server", dns="localhost", ends=3 * DAY)) as server:
        stranger = xdsctl("doctor", "--server", server, "-o", "json")
        in_a_table = xdsctl("doctor", "--server", server)
        known = xdsctl("doctor", "--server", server, "--cacert", pem(tmp_path, OURS), "-o", "json")

    (row,) = stranger.data
    assert (stranger.status, row["state"], row["check"]) == (NOT_ACCEPTED, "FAIL", "certificate")
    assert "--cacert" in row["fix"]
    # A cell is too short for whose certificate it is.
    assert "was signed by 'CN=ours', which this machine does not trust" in in_a_table.err
    soon = next(row for row in known.data if row["check"] == "certificate")
    assert (soon["state"], "signed by 'CN=ours', good for 2 days" in soon["found"]) == ("warn", True)
