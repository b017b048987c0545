"""Tokens and the audit log by xdsctl, over HTTP: a secret is told once and lies nowhere else; who revokes is told what
ends.
"""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from controlplane.accounts.models import ApiToken, ClientToken
from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.test_by_xdsctl import at_a_terminal, xdsctl_as
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import DONE, NO, NOT_ACCEPTED, NOT_THERE, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


@pytest.fixture
def address() -> Iterator[str]:
    environment_default_ensure()
    with serving_web() as found:
        yield found


@pytest.fixture
def xdsctl(address: str, tmp_path: Path) -> Xdsctl:
    return xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


def works(address: str, token: str) -> bool:
    """Whether the API knows it."""
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{address}/api/v1/environments", headers=headers).status_code == 200


def test_create_token__for_a_pipeline__alone_on_standard_output_and_nowhere_else(address: str, xdsctl: Xdsctl) -> None:
    plain = xdsctl("create", "token", "ci", "--scope", "viewer", "--expires", "30d")
    quiet = xdsctl("create", "token", "ci2", "--scope", "viewer@default", "--scope", "editor@*", "-q")
    client = xdsctl("create", "client-token", "spiffe-pay")

    assert (plain.status, plain.out.count("\n")) == (DONE, 1)
    assert works(address, plain.out.strip())
    assert plain.out.strip() not in plain.err
    assert "It is not shown again." in plain.err
    assert quiet.err == ""
    assert works(address, quiet.out.strip())
    assert "It never ends" in client.err
    ends = ApiToken.objects.get(name="ci").expires_at
    assert ends is not None
    assert abs(ends - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=5)
    scopes = ApiToken.objects.get(name="ci2").scopes
    assert scopes == [{"role": "viewer", "environment": "default"}, {"role": "editor", "environment": None}]
    assert ClientToken.objects.get().environment == "default"
    shown = "".join(xdsctl("get", kind, "-o", "json", "--all").out for kind in ("tokens", "client-tokens", "audit"))
    for made in (plain, quiet, client):
        assert made.out.strip() not in shown


def test_create_token__limited_to_some_resources__works_with_the_commands_for_them(
    address: str, xdsctl: Xdsctl, tmp_path: Path
) -> None:
    publish(cluster("pay"), cluster("shop"))
    limits = "/types:cluster+route/names:pay*+a%2Fb"

    made = xdsctl("create", "token", "pay", "--scope", f"editor@default{limits}", "-q")
    bad = [
        xdsctl("create", "token", "t", "--scope", f"editor@default/{each}")
        for each in ("names", "kind:x", "owner:a/owner:b")
    ]
    listed = xdsctl("get", "tokens")
    pay = Xdsctl({**xdsctl.variables, "XDSCTL_TOKEN": made.out.strip()})
    file = tmp_path / "pay.json"
    file.write_text(json.dumps(cluster("pay", connect_timeout="3s")))
    seen, difference, applied = pay("get", "cluster"), pay("diff", "-f", str(file)), pay("apply", "-f", str(file))
    file.write_text(json.dumps(cluster("shop", connect_timeout="3s")))
    refused = pay("apply", "-f", str(file))

    assert ApiToken.objects.get(name="pay").scopes == [
        {"role": "editor", "environment": "default", "types": ["cluster", "route"], "names": ["a/b", "pay*"]}
    ]
    assert "editor@default/types:cluster+route/names:a%2Fb+pay*" in listed.out
    assert [each.status for each in bad] == [USAGE] * 3
    assert ("pay" in seen.out, "shop" in seen.out) == (True, False)
    assert "3s" in difference.out
    assert (applied.status, refused.status) == (DONE, NOT_ACCEPTED)
    assert "cluster, route" in refused.err


def test_create_token__into_a_file__only_its_owner_reads_it_and_none_is_written_over(
    address: str, xdsctl: Xdsctl, tmp_path: Path
) -> None:
    file, refused = tmp_path / "token", tmp_path / "refused"
    file_mask = os.umask(0)
    try:
        said = xdsctl("create", "token", "ci", "--scope", "viewer", "--out", str(file), "-o", "json")
    finally:
        os.umask(file_mask)
    again = xdsctl("create", "token", "ci3", "--scope", "viewer", "--out", str(file))
    bad = xdsctl("create", "token", "ci4", "--scope", "king", "--out", str(refused))
    named = [xdsctl("create", "token", "ci5", "--scope", "viewer", "-o", form) for form in ("name", "github")]

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert works(address, file.read_text())
    assert file.read_text() not in said.out + said.err
    assert "token" not in said.data
    assert (again.status, "exists already" in again.err) == (USAGE, True)
    assert (bad.status, refused.exists()) == (NO, False)
    assert [each.status for each in named] == [USAGE, USAGE]
    assert list(ApiToken.objects.values_list("name", flat=True).filter(name__startswith="ci")) == ["ci"]


def test_delete_token__says_which_end_with_it_and_ends_them(address: str, xdsctl: Xdsctl, tmp_path: Path) -> None:
    first = xdsctl("create", "token", "maker", "--scope", "admin", "-q").out.strip()
    maker = Xdsctl({**xdsctl.variables, "XDSCTL_TOKEN": first})
    second = maker("create", "token", "made", "--scope", "admin", "-q").out.strip()
    third = Xdsctl({**xdsctl.variables, "XDSCTL_TOKEN": second})("create", "token", "last", "--scope", "viewer", "-q")
    number = ApiToken.objects.get(name="maker").pk

    piped = xdsctl("delete", "token", str(number))
    declined, seen = at_a_terminal(maker, "n", "delete", "token", str(number))
    before = [works(address, token) for token in (first, second, third.out.strip())]
    done = xdsctl("delete", "token", str(number), "--yes")
    again = xdsctl("delete", "token", str(number), "--yes")

    assert piped.status == USAGE
    assert declined == NO
    assert "'maker' (admin@default) ends now." in seen
    assert "made with it" in seen
    assert "'made'" in seen
    assert "'last'" in seen
    assert "the one that this command uses" in seen
    assert first not in seen
    assert before == [True] * 3
    assert done.status == DONE
    assert [works(address, token) for token in (first, second, third.out.strip())] == [False] * 3
    assert (again.status, "nothing was changed" in again.err) == (DONE, True)
    assert xdsctl("get", "tokens", "-o", "name").out.split() == [str(ApiToken.objects.get(revoked_at=None).pk)]
    assert len(xdsctl("get", "tokens", "--all", "-o", "name").out.split()) == 4


def test_delete_client_token__says_whose_streams_end(xdsctl: Xdsctl) -> None:
    publish(cluster("pay"))
    Fleet(2, identity="payments").accept(held("pay", 1))
    Fleet(1, identity="others", first=7).accept(held("pay", 1))
    digest()
    for subject in ("payments", "idle"):
        xdsctl("create", "client-token", subject)
    tokens = {token.subject: str(token.pk) for token in ClientToken.objects.all()}

    said = xdsctl("delete", "client-token", tokens["payments"], "--yes", "-o", "json")
    idle = xdsctl("delete", "client-token", tokens["idle"], "--yes")
    none = xdsctl("delete", "client-token", "999", "--yes")

    assert said.data == {"deleted": f"client-token/{tokens['payments']}"}
    assert "2 clients are connected as that identity" in said.err
    assert "node-1, node-2." in said.err
    assert "No client is connected as that identity." in idle.err
    assert none.status == NOT_THERE
    assert not ClientToken.objects.filter(revoked_at=None).exists()


def test_tokens__of_another_tenant__neither_listed_nor_ended(address: str, xdsctl: Xdsctl, tmp_path: Path) -> None:
    xdsctl("create", "environment", "prod")
    xdsctl("create", "client-token", "payments")
    stranger = xdsctl_as(address, tmp_path, Scope(Role.ADMIN, "prod"))
    number = str(ClientToken.objects.get().pk)

    assert stranger("get", "client-tokens", "-o", "json").data == []
    assert stranger("delete", "client-token", number, "--yes").status == NOT_THERE
    assert stranger("create", "client-token", "x").status == NOT_ACCEPTED  # of 'default'
    assert stranger("create", "token", "x", "--scope", "viewer@*").status == NOT_ACCEPTED
    assert ClientToken.objects.get().revoked_at is None


def test_audit__since_by_whom_and_everywhere__newest_first_and_no_more_than_asked_for(xdsctl: Xdsctl) -> None:
    xdsctl("create", "group", "edge", "--matcher", "identity=a")
    xdsctl("create", "environment", "prod", "-m", "ticket 7")

    (actor,) = {each["actor"] for each in xdsctl("get", "audit", "--verb", "client_group.created", "-o", "json").data}
    here = xdsctl("get", "audit", "--since", "2h", "--actor", actor, "-o", "json").data
    everywhere = xdsctl("get", "audit", "-A", "--verb", "environment.created", "--limit", "1", "-o", "json").data
    nobody = xdsctl("get", "audit", "--actor", "nobody")
    table = xdsctl("get", "audit").out
    wrong = xdsctl("get", "audit", "--since", "yesterday")

    assert [each["verb"] for each in here] == ["client_group.created"]
    assert [(each["environment"], each["detail"]) for each in everywhere] == [("prod", {"message": "ticket 7"})]
    assert nobody.err == "Nothing found.\n"
    assert table.splitlines()[0].split()[:4] == ["AT", "ACTOR", "VERB", "SUBJECT"]
    assert (wrong.status, "an age such as 24h" in wrong.err) == (NO, True)


def test_audit__followed__tells_what_happens_and_ends_well_when_interrupted(xdsctl: Xdsctl) -> None:
    xdsctl("create", "group", "before", "--matcher", "identity=a")
    command = [sys.executable, "-m", "xdsctl", "get", "audit", "--since", "1h", "-w", "--verb", "client_group.created"]
    process = subprocess.Popen(
        [*command, "-o", "json"], stdout=subprocess.PIPE, text=True, env={**os.environ, **xdsctl.variables}
    )
    assert process.stdout is not None

    def event() -> str:
        text = ""
        while not text.endswith("\n}\n"):
            text += process.stdout.readline()  # type: ignore[union-attr]  # it was asked for
        return str(json.loads(text)["detail"]["after"]["key"])

    try:
        first = event()
        for key in ("one", "two"):
            xdsctl("create", "group", key, "--matcher", "identity=a")
        then = [event(), event()]
        process.send_signal(signal.SIGINT)
        status = process.wait(20)
    finally:
        process.kill()
        process.stdout.close()

    assert first == "before"
    assert then == ["one", "two"]
    assert status == DONE
