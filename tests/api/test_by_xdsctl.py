"""Environments, groups and rules by xdsctl, over HTTP: what it writes, whom it asks, and what it says when refused."""

import json
import os
import pty
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controlplane.access.models import AccessRule
from controlplane.accounts.principal import ADMIN_SCOPES, SYSTEM, Role, Scope
from controlplane.accounts.services import api_token_create
from controlplane.catalog.freezes import Weekday
from controlplane.catalog.models import Change, Environment
from controlplane.catalog.services import environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster, route, tls_secret
from tests.support.web_thread import serving_web
from tests.support.xdsctl import CONFLICT, DONE, LOSS, NO, NOT_ACCEPTED, NOT_THERE, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])


def xdsctl_as(address: str, folder: Path, *scopes: Scope, name: str = "test") -> Xdsctl:
    """With a token that has these scopes; `name` tells two of the same role apart."""
    _, token = api_token_create(name=f"{name}-{scopes[0].role.value}", scopes=scopes, actor=SYSTEM)
    contexts = str(folder / "contexts.json")
    return Xdsctl({"XDSCTL_SERVER": address, "XDSCTL_TOKEN": token, "XDSCTL_CONFIG": contexts, "COLUMNS": "250"})


@pytest.fixture
def address() -> Iterator[str]:
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)
    with serving_web() as found:
        yield found


@pytest.fixture
def xdsctl(address: str, tmp_path: Path) -> Xdsctl:
    return xdsctl_as(address, tmp_path, *ADMIN_SCOPES)


@pytest.fixture
def fleet(address: str) -> None:
    """Two clients of `default` that have a cluster."""
    publish(cluster("pay"))
    Fleet(2).accept(held("pay", 1))
    digest()


def test_kinds__made_shown_changed_and_deleted__each_write_a_change_with_its_reason(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    group = xdsctl("create", "group", "edge", "--matcher", "identity=spiffe://corp/*", "-m", "ticket 7")
    rule = xdsctl(
        *("create", "rule", "--effect", "deny", "--pattern", "pay*", "--group", "edge", "--type", "cluster"),
        *("--text", "ask payments", "-m", "ticket 7", "-o", "name"),
    ).out.strip()
    listed = xdsctl("get", "rules").out
    edited = xdsctl("edit", "rule", rule, "-f", "-", "-m", "ticket 8", stdin="enabled: false")
    shown = xdsctl("describe", "group", "edge").out
    told = xdsctl("describe", "rule", rule).out
    again = xdsctl("edit", "rule", rule, "-f", "-", stdin="enabled: false")
    gone = [xdsctl("delete", *what, "--yes").status for what in (("rule", rule), ("group", "edge"))]

    assert group.status == DONE, group
    assert group.out.startswith("group edge, change ")
    assert "deny" in listed
    assert "ask payments" in listed
    assert "follows it" in edited.err
    assert f"rule {rule}: deny cluster pay* to edge (disabled)" in shown
    assert "Effect:    deny (disabled" in told
    assert (again.status, again.err) == (DONE, "It was so already.\n")
    assert gone == [DONE, DONE]
    messages = list(Change.objects.filter(kind="access").order_by("pk").values_list("message", flat=True))
    assert messages[0] == "client group edge created: ticket 7"
    assert [each.rpartition(": ")[2] for each in messages[:3]] == ["ticket 7", "ticket 7", "ticket 8"]
    assert len(messages) == 5


def test_environment__printed_as_yaml_and_made_again_under_another_key__is_the_same(xdsctl: Xdsctl) -> None:
    policy = {"selectors": [{"node_id": "shop-*"}], "quarantine": "suggest", "loss_threshold": {"other_percent": 3}}
    xdsctl("edit", "environment", "prod", "-f", "-", stdin=yaml.safe_dump(policy))
    printed = xdsctl("get", "env", "prod", "-o", "yaml").out
    with_selector = yaml.safe_load(printed)
    made = xdsctl("create", "environment", "copy", "-f", "-", stdin=printed)

    assert made.status == DONE, made
    copy, prod = (Environment.objects.get(key=key) for key in ("copy", "prod"))
    same = ("selectors", "quarantine", "loss_other_percent", "default_effect", "content")
    assert [getattr(copy, each) for each in same] == [getattr(prod, each) for each in same]
    assert with_selector["selectors"] == policy["selectors"]
    assert "Takes:        node_id=shop-*" in xdsctl("describe", "environment", "copy").out
    assert xdsctl("delete", "environment", "copy", "--yes", "-o", "json").data == {"deleted": "environment/copy"}


def test_write__that_clients_lose_by__refused_with_who_loses_what_until_it_is_meant(
    fleet: None, xdsctl: Xdsctl
) -> None:
    deny = ("create", "rule", "--effect", "deny", "--pattern", "pay")

    tried = xdsctl(*deny, "--dry-run", "server")
    data = xdsctl(*deny, "--dry-run", "server", "-o", "json").data
    refused = xdsctl(*deny)
    left = AccessRule.objects.count()
    done = xdsctl(*deny, "--accept-loss", "2")

    assert tried.status == DONE
    assert tried.out.startswith(
        "2 of 2 connected clients would lose something (2 envoy 1.40).\nWhat: cluster/pay (2)\n"
    )
    assert tried.err == "Nothing was done.\n'xdsctl create rule' will ask for --accept-loss 2.\n"
    assert (data["dry_run"], data["loss"]["clients"]) == (True, 2)
    assert refused.status == LOSS
    assert "error: 2 of 2 connected clients would lose something" in refused.err
    assert "xdsctl create rule --effect deny --pattern pay --accept-loss 2" in refused.err
    assert left == 0
    assert (done.status, AccessRule.objects.count()) == (DONE, 1)
    opened = str(AccessRule.objects.get().pk)
    assert xdsctl("delete", "rule", opened, "--yes").status == DONE
    shut = xdsctl("edit", "environment", "default", "-f", "-", stdin="default_effect: deny")
    assert (shut.status, Environment.objects.get(key="default").default_effect) == (LOSS, "allow")


FROZEN_WRITES = (
    (("apply", "-f", "-"), cluster("shop")),
    (("delete", "cluster", "pay"), None),
    (("create", "group", "edge", "--matcher", "node_id=n", "--trust", "declared"), None),
    (("edit", "group", "edge", "-f", "-"), {"matchers": [{"node_id": "m"}]}),
    (("create", "rule", "--effect", "allow", "--pattern", "x"), None),
    (("edit", "rule", "{rule}", "-f", "-"), {"pattern": "y"}),
    (("delete", "rule", "{rule}", "--yes"), None),
    (("delete", "group", "edge", "--yes"), None),
    (("edit", "environment", "default", "-f", "-"), {"default_effect": "deny"}),
)


def test_write__while_it_is_frozen__4_until_it_is_broken_with_a_reason(fleet: None, xdsctl: Xdsctl) -> None:
    hours = {"days": [each.value for each in Weekday], "from": "00:00", "until": "24:00"}
    freeze = json.dumps({"freezes": [{"reason": "the year's end", "weekly": hours}]})
    assert xdsctl("edit", "environment", "default", "-f", "-", stdin=freeze).status == DONE

    for words, given in FROZEN_WRITES:
        rule = str(AccessRule.objects.values_list("pk", flat=True).first())
        write = [word.format(rule=rule) for word in words]
        stdin = "" if given is None else json.dumps(given)
        refused = xdsctl(*write, stdin=stdin)
        count = Change.objects.count()
        loss = () if "group" in write and "edit" not in write else ("--accept-loss", "2")
        broken = xdsctl(*write, "--break-glass", "the shop is down", *loss, stdin=stdin)

        assert refused.status == CONFLICT, words
        assert "is frozen until" in refused.err
        assert "Here that is --break-glass REASON." in refused.err
        assert (broken.status, Change.objects.count()) == (DONE, count + 1), broken.err
        assert Change.objects.latest("pk").message.endswith("broke the freeze: the shop is down")


def test_problems__of_a_file__all_of_them_with_file_and_line(xdsctl: Xdsctl, tmp_path: Path) -> None:
    file = tmp_path / "rule.yaml"
    file.write_text("effect: maybe\npattern: '*'\nclient_groops: [edge]\n")

    said = xdsctl("create", "rule", "-f", str(file))
    by_option = xdsctl("create", "rule", "--effect", "maybe", "--pattern", "*")
    listed = xdsctl("create", "rule", "-f", "-", stdin="- effect: deny")

    assert said.status == NO
    assert f"{file}:1:1: error XDS" in said.err
    assert f"{file}:3:1: error XDS" in said.err
    assert by_option.status == NO
    assert by_option.err.startswith("effect: error XDS")
    assert (listed.status, "must hold one object" in listed.err) == (USAGE, True)
    assert AccessRule.objects.count() == 0


def test_edit__in_an_editor__stores_what_changed_and_keeps_the_text_where_it_cannot(
    xdsctl: Xdsctl, tmp_path: Path
) -> None:
    xdsctl("create", "group", "edge", "--matcher", "identity=a*", "-o", "name")

    def editing(script: str) -> dict[str, str]:
        file = tmp_path / "editor"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return {"EDITOR": str(file), "VISUAL": ""}

    nothing = xdsctl("edit", "group", "edge", **editing("true"))
    stored = xdsctl("edit", "group", "edge", **editing('sed -i "s/a[*]/b*/" "$1"'))
    refused = xdsctl("edit", "group", "edge", **editing('sed -i "s/verified/perhaps/" "$1"'))
    # Somebody else is quicker while the text is open.
    variables = [f"{key}={value}" for key, value in xdsctl.variables.items()]
    again = shlex.join(["env", *variables, sys.executable, "-m", "xdsctl", "-q", "edit", "group", "edge", "-f", "-"])
    quicker = f'echo "trust: declared" | {again} >/dev/null'
    late = xdsctl("edit", "group", "edge", **editing(f'{quicker}\nsed -i "s/b[*]/c*/" "$1"'))

    assert nothing.err == "Nothing was changed.\n"
    assert stored.status == DONE
    assert refused.status == NO
    kept = refused.err.rpartition("Your text is in '")[2].partition("'")[0]
    assert "perhaps" in Path(kept).read_text()
    assert late.status == CONFLICT
    assert "Somebody else changed it meanwhile" in late.err
    found = xdsctl("get", "group", "edge", "-o", "json").data
    assert (found["matchers"], found["trust"]) == ([{"identity": "b*"}], "declared")


def at_a_terminal(xdsctl: Xdsctl, typed: str, *arguments: str) -> tuple[int, str]:
    """A command of somebody who sits at a terminal and types this: how it ended, and what they saw."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xdsctl", *arguments]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env={**os.environ, **xdsctl.variables, "NO_COLOR": "1"}
    )
    os.close(theirs)
    os.write(ours, f"{typed}\n".encode())
    seen = b""
    try:
        while part := os.read(ours, 4_096):
            seen += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(30), seen.decode().replace("\r\n", "\n")


def test_delete__asks_at_a_terminal_and_needs_yes_elsewhere(xdsctl: Xdsctl) -> None:
    rule = xdsctl("create", "rule", "--effect", "allow", "--pattern", "x*", "-o", "name").out.strip()

    piped = xdsctl("delete", "rule", rule)
    declined = at_a_terminal(xdsctl, "no", "delete", "rule", rule)
    left = AccessRule.objects.count()
    agreed = at_a_terminal(xdsctl, "yes", "delete", "rule", rule)

    assert (piped.status, "--yes says that it is meant" in piped.err) == (USAGE, True)
    assert declined[0] == NO
    assert "pattern: x*" in declined[1]
    assert f"Delete rule '{rule}'? Type yes to go on:" in declined[1]
    assert left == 1
    assert agreed[0] == DONE
    assert AccessRule.objects.count() == 0


def test_kinds__of_another_tenant_or_without_the_role__as_the_api_refuses(address: str, tmp_path: Path) -> None:
    stranger = xdsctl_as(address, tmp_path, Scope(Role.VIEWER, "prod"))

    listed = stranger("get", "environments", "-o", "name")
    hidden = [stranger(*words).status for words in (("get", "env", "default"), ("get", "rules"), ("get", "audit"))]
    refused = stranger("-e", "prod", "create", "rule", "--effect", "allow", "--pattern", "*")

    assert listed.out == "prod\n"
    assert hidden == [NOT_THERE] * 3
    assert refused.status == NOT_ACCEPTED
    assert AccessRule.objects.count() == 0


def test_words__of_a_kind_and_no_kind__lead_to_one_command_or_say_which_there_are(xdsctl: Xdsctl) -> None:
    one = [xdsctl("get", word, "-o", "json").data for word in ("environment", "environments", "env", "envs")]
    bare = xdsctl("create")
    unknown = xdsctl("create", "cluster", "pay")

    assert one == [one[0]] * 4
    for said in (bare, unknown):
        assert said.status == USAGE
        assert "'create' needs a kind: environment, group, rule, token, client-token" in said.err


def test_graph__around_a_resource__lines_with_what_each_refers_to_and_drawings(xdsctl: Xdsctl) -> None:
    publish(cluster("pay"), route("edge", "pay"), route("lost", "gone", domain="lost.example"))

    around = xdsctl("graph", "cluster/gone")

    assert around.status == DONE
    assert around.out.splitlines() == ["cluster/gone  missing", "route/lost  r1  stalled", "  -> cluster/gone  missing"]
    assert xdsctl("graph", "--as", "dot").out.startswith("digraph")
    assert xdsctl("graph", "cluster", "nothing").status not in {DONE, USAGE}


def test_search__words__prints_what_they_stand_in_and_what_was_not_searched(xdsctl: Xdsctl) -> None:
    publish(cluster("pay"), tls_secret("key", "x"))

    found = xdsctl("search", "PAY", "cluster")
    only = xdsctl("search", "why", "--kind", "change", "-o", "json")

    assert found.status == DONE
    assert [line.split() for line in found.out.splitlines()] == [
        ["KIND", "ENVIRONMENT", "NAME", "WHAT", "WHEN"],
        ["resource", "default", "cluster/pay", "-", "-"],
    ]
    assert "Nor were 1 contents that hold secrets." in found.err
    assert [each["kind"] for each in only.data] == ["change"]
    assert xdsctl("search", "nothing-is-called-so").out == ""
