"""What `make audit` says of licences and vulnerabilities, also where nobody can be asked; and the security scanner."""

import json
import re
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from scripts.audit import (
    LOCKS,
    Found,
    Package,
    is_allowed,
    licence_of,
    licences,
    locked,
    status,
    vulnerabilities,
)
from tests.support.ports import free_ports

ROOT = Path(__file__).parents[3]
PACKAGES = ("controlplane", "adsserver", "xdscore", "xdsclient", "xdsctl", "bench", "scripts", "deploy")
GOOD, BAD = Package("good", "1.0"), Package("bad", "2.0")


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("(MIT AND PSF-2.0)", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("GPL-2.0-only", False),
        ("SSPL-1.0", False),
        ("unknown", False),
        ("", False),
        ("(MIT OR GPL-3.0-only) AND SSPL-1.0", False),
        ("(MIT) OR (SSPL-1.0 AND MIT)", False),
    ],
)
def test_licence__allowed_only_where_each_part_of_an_alternative_is(expression: str, allowed: bool) -> None:
    assert is_allowed(expression) is allowed


def test_licences__of_all_that_is_locked__are_known_and_allowed() -> None:
    packages = locked(ROOT / each for each in LOCKS)
    found = licences(packages, {each.name: licence_of(each.name) for each in packages})

    assert len(packages) > 100
    assert not found.wrong, [line for line in found.lines if "not among" in line]
    assert not found.unseen, found.lines[-1]


def test_licences__forbidden_or_not_to_be_read__are_named() -> None:
    found = licences([GOOD, BAD], {"good": "MIT", "bad": "GPL-3.0-only"})
    unread = licences([GOOD, BAD], {"good": "MIT", "bad": None})

    assert found.wrong
    assert found.lines[-1].startswith("bad: 'GPL-3.0-only' is not among the licences that are allowed")
    assert (unread.wrong, unread.unseen) == (False, True)
    assert unread.lines[-1] == "Not installed here, so their licences were not read: bad."


@contextmanager
def osv(answer: object) -> Iterator[tuple[str, list[object]]]:
    """An address that answers so, and what it was asked."""
    asked: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: object) -> None:
            """Nothing: the test looks at what was asked."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.handle_request, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", asked
        thread.join(5)


def test_vulnerabilities__some_are_known__are_named_and_wrong() -> None:
    with osv({"results": [{}, {"vulns": [{"id": "PYSEC-1"}, {"id": "GHSA-2"}]}]}) as (url, asked):
        found = vulnerabilities([GOOD, BAD], url)

    assert (found.wrong, found.unseen) == (True, False)
    assert found.lines[0] == "bad 2.0: PYSEC-1, GHSA-2"
    query = {"package": {"name": "bad", "ecosystem": "PyPI"}, "version": "2.0"}
    assert asked == [
        {"queries": [{**query, "package": {"name": "good", "ecosystem": "PyPI"}, "version": "1.0"}, query]}
    ]


@pytest.mark.parametrize("answer", [{"results": [{}]}, {"error": "no"}, []], ids=["too few", "no results", "a list"])
def test_vulnerabilities__answer_that_is_none__is_not_taken_for_all_is_well(answer: object) -> None:
    with osv(answer) as (url, _):
        found = vulnerabilities([GOOD, BAD], url)

    assert (found.wrong, found.unseen) == (False, True)


def test_vulnerabilities__nobody_can_be_asked__says_so_and_that_is_no_success() -> None:
    found = vulnerabilities([GOOD], f"http://127.0.0.1:{free_ports(1)[0]}/")

    assert found.lines[0].startswith("Known vulnerabilities were NOT looked up: http://127.0.0.1:")
    assert found.lines[1] == "Run `make audit` where it can be reached."
    assert status([Found((), wrong=False, unseen=False), found]) == 3


def test_status__what_is_wrong_counts_for_more_than_what_was_not_seen() -> None:
    fine, wrong, unseen = (Found((), wrong=a, unseen=b) for a, b in ((False, False), (True, False), (False, True)))

    assert [status(each) for each in ([fine], [fine, unseen], [unseen, wrong])] == [0, 3, 1]


def test_scanner__is_part_of_the_gate_and_no_folder_or_rule_is_left_out() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]

    recipe = makefile.partition("\ncheck: ")[2].partition("\n\n")[0]
    assert "\t$(SCAN)\n" in recipe
    assert re.search(
        r"^SCAN := .*ruff check --isolated --select S .*\$\(PACKAGES\) manage.py scripts deploy$",
        makefile,
        re.MULTILINE,
    )
    assert [rule for rule in lint["ignore"] if re.fullmatch(r"S\d*", rule)] == []
    ignored = {
        place for place, rules in lint["per-file-ignores"].items() if any(re.fullmatch(r"S\d*", each) for each in rules)
    }
    assert ignored == {"tests/**"}


def test_scanner__a_line_that_may__says_why() -> None:
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*.py")]
    silent = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"# noqa:(?=.*\bS\d{3}\b)[ ,A-Z\d]*$", line) or re.search(r"ruff: *noqa(: .*\bS\d| *$)", line)
    ]

    assert silent == []
