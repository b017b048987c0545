"""Route cases by xdsctl over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.database.aliases import READER
from tests.api.conftest import Caller
from tests.api.test_route_cases import PAY, api  # noqa: F401 - a fixture
from tests.support.manifests import route
from tests.support.web_thread import serving_web
from tests.support.xdsctl import CONFLICT, DONE, NO, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def xdsctl(tmp_path: Path, api: Caller) -> Iterator[Xdsctl]:  # noqa: F811
    _, token = api_token_create(name="test", scopes=ADMIN_SCOPES, actor=SYSTEM)
    with serving_web() as address:
        contexts = str(tmp_path / "contexts.json")
        yield Xdsctl({"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": contexts})


def test_cases__applied_listed_run_exported_and_deleted(xdsctl: Xdsctl, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"cases": [PAY, PAY | {"name": "moved", "expect": {"answer": "redirect"}}]}))

    tried = xdsctl("route-cases", "apply", "-f", str(file), "--dry-run")
    applied = xdsctl("route-cases", "apply", "-f", str(file))
    ran, one = xdsctl("route-cases", "run"), xdsctl("route-cases", "run", "pays", "-o", "json")
    exported = xdsctl("route-cases", "export")
    again = xdsctl("route-cases", "apply", "-f", "-", "-o", "json", stdin=exported.out)
    gone = xdsctl("route-cases", "delete", "moved")
    left = xdsctl("route-cases", "list", "-o", "name")

    assert "2 cases would be kept." in tried.err
    assert (applied.status, "1 of them fail now" in applied.err) == (DONE, True)
    assert (ran.status, "1 of 2 fail." in ran.err) == (NO, True)
    assert (one.status, [each["holds"] for each in one.data]) == (DONE, [True])
    assert [each["written"] for each in again.data] == ["unchanged", "unchanged"]
    assert (gone.status, left.out) == (DONE, "pays\n")


def test_cases__that_cannot_be__are_told_with_their_line(xdsctl: Xdsctl, tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text("- name: a\n  authority: shop.example\n  expect:\n    answer: nowhere\n")

    said = xdsctl("route-cases", "apply", "-f", str(file))

    assert said.status == NO
    assert f"{file}:4:" in said.err
    file.write_text("cases: 7")
    assert xdsctl("route-cases", "apply", "-f", str(file)).status == USAGE


def test_import__of_tests__names_what_no_case_can_say_with_its_line(xdsctl: Xdsctl, tmp_path: Path) -> None:
    file = tmp_path / "tests.yaml"
    file.write_text(
        "tests:\n- test_name: pays\n  input: {authority: shop.example, path: /pay, method: GET, random_value: 3}\n"
        "  validate: {cluster_name: pay}\n"
    )

    said = xdsctl("route-cases", "import", str(file))

    assert said.status == DONE
    assert "0 cases kept." in said.err
    assert f"{file}:2:" in said.err
    assert "a request does not have input.random_value" in said.err


def test_apply__that_breaks_a_case__ends_with_4_and_says_how_to_mean_it(xdsctl: Xdsctl, tmp_path: Path) -> None:
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump([PAY]))
    (tmp_path / "route.yaml").write_text(yaml.safe_dump(route("shop", "other")))
    assert xdsctl("route-cases", "apply", "-f", str(tmp_path / "cases.yaml")).status == DONE
    file = str(tmp_path / "route.yaml")

    dry = xdsctl("apply", "-f", file, "--dry-run", "server")
    refused = xdsctl("apply", "-f", file)
    meant = xdsctl("apply", "-f", file, "--accept-cases", "1")

    assert (dry.status, "XDS3091" in dry.err) == (NO, True)
    assert (refused.status, "--accept-cases 1" in refused.err, "XDS3091" in refused.err) == (CONFLICT, True, True)
    assert meant.status == DONE


def test_rules_and_policies__that_break_a_case__are_stored_by_the_number_of_cases_alone(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump([PAY | {"client": {"node_id": "edge-1"}}]))
    assert xdsctl("route-cases", "apply", "-f", str(tmp_path / "cases.yaml")).status == DONE
    allow = xdsctl("create", "rule", "--effect", "allow", "--pattern", "*", "-o", "name")
    deny = ("create", "rule", "--effect", "deny", "--pattern", "pay", "--position", "1")
    closed = ("edit", "rule", allow.out.strip(), "-f", "-", "-m", "closed")

    refused = [xdsctl(*deny), xdsctl(*closed, stdin="effect: deny")]
    meant = xdsctl(*deny, "--accept-cases", "1", "-o", "name")
    undone = xdsctl("delete", "rule", meant.out.strip(), "--yes")

    assert [(each.status, "--accept-cases 1" in each.err) for each in refused] == [(CONFLICT, True)] * 2
    assert (meant.status, undone.status) == (DONE, DONE)
    again = xdsctl(*closed, "--accept-cases", "1", stdin="effect: deny")
    assert (again.status, "XDS3091" in again.err) == (DONE, True)
    opened = xdsctl("edit", "environment", "default", "-f", "-", "--accept-cases", "1", stdin="default_effect: allow")
    assert opened.status == DONE
