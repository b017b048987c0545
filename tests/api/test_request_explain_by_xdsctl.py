"""Where a request goes, by xdsctl over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM
from controlplane.accounts.services import api_token_create
from controlplane.database.aliases import READER
from tests.api.conftest import Caller
from tests.api.test_request_explain import api  # noqa: F401 - a fixture
from tests.services.incidents.fleet import publish
from tests.support.manifests import listener
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, UNDECIDED, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def xdsctl(tmp_path: Path, api: Caller) -> Iterator[Xdsctl]:  # noqa: F811
    _, token = api_token_create(name="test", scopes=ADMIN_SCOPES, actor=SYSTEM)
    with serving_web() as address:
        contexts = str(tmp_path / "contexts.json")
        yield Xdsctl({"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": contexts})


def test_explain_request__of_a_url__prints_each_choice_and_who_lost(xdsctl: Xdsctl) -> None:
    said = xdsctl("explain", "request", "http://shop.example/pay?a=b")

    assert said.status == DONE, said
    lines = said.out.splitlines()
    assert lines[0] == "ROUTED  GET http://shop.example/pay?a=b -> cluster pay"
    assert (
        " ok   listener             Listener 'edge' is the only one; it has port 8080, not port 80.  [listener/edge]"
        in lines
    )
    lost = "      - 0 wants the header 'x-canary', which the request does not have"
    assert f"{lost}  [/virtual_hosts/1/routes/0/match/headers/0/string_match line 20]" in lines
    assert lines[-1] == " endpoint  127.0.0.1:9001 UNKNOWN local"


def test_explain_request__headers_method_listener_and_target__are_of_the_request(xdsctl: Xdsctl) -> None:
    canary = xdsctl("explain", "request", "http://shop.example/pay", "-H", "X-Canary: 1", "-X", "POST", "-o", "json")
    target = xdsctl("explain", "request", "xds:///shop.internal", "--path", "/a.B/C", "-o", "json")
    named = xdsctl("explain", "request", "http://other/", "--listener", "edge", "-o", "name")

    assert (canary.status, canary.data["cluster"]) == (DONE, "canary")
    assert (target.status, target.data["listener"], target.data["answer"]) == (NO, "shop.internal", "refused")
    assert (named.status, named.out) == (DONE, "direct\n")


def test_explain_request__not_to_be_said__ends_with_5(xdsctl: Xdsctl) -> None:
    publish(listener("second", "shop", 8081))

    assert xdsctl("explain", "request", "http://shop.example/pay").status == UNDECIDED


@pytest.mark.parametrize(
    "words", [["shop"], ["ftp://shop/"], ["http://["], ["http://x/", "-H", "x"], ["http://x/", "--path", "/"]]
)
def test_explain_request__that_is_none__is_wrong_usage(xdsctl: Xdsctl, words: list[str]) -> None:
    assert xdsctl("explain", "request", *words).status == USAGE
