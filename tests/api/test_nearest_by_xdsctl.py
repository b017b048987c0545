"""`Did you mean …?` of what the server does not have: from what the token may read, and from nothing else."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from tests.api.test_by_xdsctl import xdsctl_as
from tests.services.incidents.fleet import publish
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import NO, NOT_THERE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def address() -> Iterator[str]:
    environment_default_ensure()
    for key in ("prod", "prod-of-others"):
        environment_create(key=key, policy=EnvironmentPolicy(), actor=SYSTEM)
    publish(cluster("payments"), cluster("ledger"))
    with serving_web() as found:
        yield found


@pytest.fixture
def xdsctl(address: str, tmp_path: Path) -> Xdsctl:
    return xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


@pytest.mark.parametrize(
    ("arguments", "status", "question"),
    [
        ("get cluster paymets", NOT_THERE, " Did you mean 'payments'?"),
        ("history cluster paymets", NOT_THERE, " Did you mean 'payments'?"),
        ("delete cluster paymets", NOT_THERE, " Did you mean 'payments'?"),
        ("rollout history cluster/paymets", NOT_THERE, " Did you mean 'payments'?"),
        ("get clsuter", NO, " Did you mean 'cluster'?"),
        ("get clsuter payments", NOT_THERE, " Did you mean 'cluster'?"),
        ("get cluster payments -e defualt", NOT_THERE, " Did you mean 'default'?"),
        ("ps -e defualt", NOT_THERE, " Did you mean 'default'?"),
        ("audit -e defualt", NOT_THERE, " Did you mean 'default'?"),
        ("describe environment defualt", NOT_THERE, " Did you mean 'default'?"),
        ("describe group edeg", NOT_THERE, " Did you mean 'edge'?"),
    ],
)
def test_what_is_not_there__is_asked_about_by_what_is_like_it(
    xdsctl: Xdsctl, arguments: str, status: int, question: str
) -> None:
    assert xdsctl("create", "group", "edge", "--matcher", "identity=a*").status == 0

    said = xdsctl(*arguments.split())

    assert said.status == status, said
    assert said.err.splitlines()[-1].endswith(question), said


def test_what_is_not_there__apply_to_an_environment__is_asked_about(xdsctl: Xdsctl, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(cluster("pay")))

    said = xdsctl("apply", "-f", str(tmp_path / "c.json"), "-e", "defualt")

    assert said.status == NOT_THERE
    assert said.err.endswith(" Did you mean 'default'?\n")


def test_what_is_not_there__like_nothing__is_told_as_it_is(xdsctl: Xdsctl) -> None:
    said = xdsctl("get", "cluster", "zzz")

    assert said.err == "error: There is no cluster 'zzz' in 'default'.\n"


def test_what_is_not_there__is_never_like_a_name_that_the_token_may_not_read(address: str, tmp_path: Path) -> None:
    viewer = xdsctl_as(address, tmp_path, Scope(Role.VIEWER, "prod"))

    foreign = viewer("get", "cluster", "paymets", "-e", "default")
    absent = viewer("get", "cluster", "paymets", "-e", "prod-of-other")
    own = viewer("get", "cluster", "paymets", "-e", "prd")

    for said in (foreign, absent, own):
        assert said.status == NOT_THERE, said
        assert "payments" not in said.err
        assert "prod-of-others" not in said.err
    assert "Did you mean 'prod'?" in own.err


def test_what_is_not_there__as_data__is_the_problem_that_the_server_sent(xdsctl: Xdsctl) -> None:
    said = xdsctl("get", "cluster", "paymets", "-o", "json")

    assert said.data["detail"] == "There is no cluster 'paymets' in 'default'."
    assert "Did you mean 'payments'?" in said.err
