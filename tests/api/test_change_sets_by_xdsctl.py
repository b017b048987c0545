"""Change sets by xdsctl, over HTTP: proposed from files, reviewed, published; what it says, and how it ends."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.accounts.principal import ADMIN_SCOPES, Role, Scope
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.services import environment_default_ensure
from controlplane.database.aliases import READER
from controlplane.incidents.services import digest
from tests.api.test_by_xdsctl import at_a_terminal, xdsctl_as
from tests.services.incidents.fleet import Fleet, held, publish
from tests.support.manifests import cluster
from tests.support.web_thread import serving_web
from tests.support.xdsctl import CONFLICT, DONE, LOSS, NO, NOT_ACCEPTED, NOT_THERE, UNDECIDED, USAGE, Xdsctl

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])

NOWHERE = "00000000-0000-0000-0000-000000000000"
SECRET = {
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
    "name": "token",
    "generic_secret": {"secret": {"inline_string": "CANARY-42"}},
}


@dataclass(frozen=True)
class People:
    """Who administers, who proposes, who reviews, and who may only look; and a folder for files."""

    admin: Xdsctl
    author: Xdsctl
    other: Xdsctl
    viewer: Xdsctl
    folder: Path

    def file(self, *manifests: dict[str, Any], name: str = "files.yaml") -> str:
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(manifests))
        return str(path)

    def draft(self, *manifests: dict[str, Any], more: tuple[str, ...] = ()) -> str:
        files = ("-f", self.file(*manifests)) if manifests else ()
        made = self.author("changesets", "create", "--title", "more time", *files, *more, "-o", "name")
        assert made.status == DONE, made
        return made.out.strip()

    def approved(self, *manifests: dict[str, Any]) -> str:
        made = self.draft(*manifests)
        assert self.author("changesets", "submit", made).status == DONE
        assert self.other("changesets", "approve", made).status == DONE
        return made

    def found(self, change_set: str) -> Any:
        return self.viewer("changesets", "get", change_set, "-o", "json").data

    def settings(self, **settings: object) -> None:
        said = self.admin("edit", "environment", "default", "-f", "-", stdin=json.dumps(settings))
        assert said.status == DONE, said

    def editor(self, script: str) -> dict[str, str]:
        file = self.folder / "editor"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return {"EDITOR": str(file), "VISUAL": ""}


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    environment_default_ensure()
    editor = Scope(Role.EDITOR, "default")
    with serving_web() as address:
        yield People(
            xdsctl_as(address, tmp_path, *ADMIN_SCOPES),
            xdsctl_as(address, tmp_path, editor, name="author"),
            xdsctl_as(address, tmp_path, editor, name="other"),
            xdsctl_as(address, tmp_path, Scope(Role.VIEWER, "default")),
            tmp_path,
        )


def stored() -> list[str]:
    return sorted(row.name for row in Resource.objects.filter(deleted=False))


def test_walk__proposed_reviewed_and_published__is_one_change_that_is_followed(people: People) -> None:
    publish(cluster("pay"), cluster("old"))
    people.settings(review={"required": True})
    files = people.file(cluster("pay", connect_timeout="2s"), cluster("shop"))
    about = ("--title", "more time", "-m", "for the sale", "--expires", "30d")

    made = people.author("changesets", "create", *about, "-f", files, "--delete", "cluster/old")
    which = made.out.split()[-1]
    listed = people.viewer("changesets", "list", "--state", "draft", "--state", "review")
    patch = people.viewer("changesets", "diff", which)
    early = people.author("changesets", "publish", which)
    asked = people.author("changesets", "submit", which, "--reason", "by Friday")
    own = people.author("changesets", "approve", which)
    said = people.other("changesets", "comment", which, "in seconds?", "--on", "cluster/pay", "--line", "3")
    taken = people.other("changesets", "approve", which, "--reason", "looks right")
    shown = people.viewer("changesets", "get", which)
    waited = people.author("changesets", "publish", which, "--wait", "--timeout", "0ms", "-o", "name")
    again = people.author("changesets", "publish", which)

    assert made.status == DONE, made
    assert made.out == f"change set {which}\n"
    assert f"'xdsctl changesets submit {which}' asks others" in made.err
    assert listed.out.splitlines()[1].split()[:6] == [which, "draft", "0", "of", "1", "3"]
    assert patch.status == NO
    assert "+connect_timeout: 2s" in patch.out
    assert "+++ /dev/null" in patch.out
    assert (early.status, "needs review" in early.err) == (CONFLICT, True)
    assert asked.out == f"change set {which}: review, version 2, 0 of 1 approval\n"
    assert (own.status, "asks for other eyes" in own.err) == (NOT_ACCEPTED, True)
    assert said.status == DONE, said
    assert taken.out == f"change set {which}: approved, version 2, 1 of 1 approval\n"
    for line in ("created     cluster/shop", "deleted     cluster/old", "message     for the sale", " looks right"):
        assert line in shown.out
    assert "of cluster/pay, line 3, " in shown.out
    [change] = people.found(which)["changes"]
    assert (waited.status, waited.out) == (UNDECIDED, f"{change}\n")
    assert (again.status, again.out) == (DONE, f"change {change}\n")
    assert "It was published before" in again.err
    assert stored() == ["pay", "shop"]
    assert Change.objects.get(public_id=change).message == "for the sale"


def test_apply__where_review_is_required__4_with_the_command_that_proposes_the_same_files(people: People) -> None:
    people.settings(review={"required": True})
    files = people.file(cluster("pay"), name="it's pay.yaml")
    write = ("apply", "-f", files, "-m", "more time", "-e", "default", "--owner", "shop", "--prune")

    refused = people.author(*write)
    line = refused.err.splitlines()[-1]
    command, hint = line.removeprefix("To propose the same files: xdsctl ").split(" (and ")
    proposed = people.author(*shlex.split(command))
    broken = people.admin(*write[:5], "--break-glass", "the shop is down")
    unbroken = people.admin("delete", "cluster", "pay")

    assert refused.status == CONFLICT, refused
    assert "Here that is --break-glass REASON." in refused.err
    assert hint == "--delete TYPE/NAME for each that --prune would delete)"
    assert proposed.status == DONE, proposed
    assert people.found(proposed.out.split()[-1])["title"] == "more time"
    assert broken.status == DONE, broken
    assert Change.objects.latest("pk").message.endswith("went past the review: the shop is down")
    assert (unbroken.status, "To propose the same files" in unbroken.err) == (CONFLICT, False)


def test_edit__by_options__changes_what_they_name_and_leaves_the_rest(people: People) -> None:
    which = people.draft(cluster("pay"), SECRET, more=("--delete", "cluster/old", "--expires", "30d"))
    files = people.file(cluster("pay"), cluster("shop"), name="new.yaml")

    people.author("changesets", "edit", which, "--title", "shorter", "--not-before", "2d")
    titled = people.viewer("changesets", "get", which, "-o", "json").data
    people.author("changesets", "edit", which, "-f", files, "--expires", "none", "--not-before", "none")
    written = people.found(which)
    people.author("changesets", "edit", which, "--delete", "none")
    kept = people.found(which)

    assert (titled["title"], titled["resource_count"]) == ("shorter", 3)
    assert titled["created_at"] < titled["not_before"] < titled["expires"]
    assert written["resource_count"] == 3  # pay, shop, and old
    assert (written["title"], written["expires"], written["not_before"]) == ("shorter", None, None)
    assert [each["name"] for each in kept["diff"]] == ["pay", "shop"]
    assert kept["resource_count"] == 2


def test_edit__deletions_alone__keeps_what_it_writes_with_its_secrets(people: People) -> None:
    which = people.draft(cluster("pay"), SECRET)

    said = people.author("changesets", "edit", which, "--delete", "cluster/old")
    done = people.author("changesets", "publish", which)

    assert (said.status, done.status) == (DONE, DONE)
    assert stored() == ["pay", "token"]
    assert "CANARY" not in said.out + done.out


def test_edit__nothing_different__it_stays_approved_and_something_different_makes_a_draft(people: People) -> None:
    which = people.approved(cluster("pay"))

    same = people.author("changesets", "edit", which, "-f", people.file(cluster("pay")))
    other = people.author("changesets", "edit", which, "-f", people.file(cluster("pay", connect_timeout="3s")))

    assert (same.err, ": approved, version 2" in same.out) == ("It was so already.\n", True)
    assert "It is a draft." in other.err
    assert ": draft, version 3, 0 of 1 approval" in other.out


def test_edit__in_an_editor__stores_what_changed_and_keeps_the_text_where_it_cannot(people: People) -> None:
    which = people.draft(cluster("pay"), SECRET)

    nothing = people.author("changesets", "edit", which, **people.editor("true"))
    saved = people.author("changesets", "edit", which, **people.editor('sed -i "s/: pay/: shop/" "$1"'))
    refused = people.author("changesets", "edit", which, **people.editor('sed -i "s/connect_t/conect_t/" "$1"'))
    colour = people.author("changesets", "edit", which, **people.editor('echo "colour: blue" >> "$1"'))

    assert nothing.err == "Nothing was changed.\n"
    assert saved.status == DONE, saved
    assert refused.status == NO
    kept = Path(refused.err.rpartition("Your text is in '")[2].partition("'")[0])
    lines = kept.read_text().splitlines()
    number = next(index for index, line in enumerate(lines, 1) if "conect_timeout" in line)
    assert f"{kept}:{number}:" in refused.err
    assert "CANARY" not in kept.read_text()
    assert (colour.status, ": error XDS" in colour.err) == (NO, True)
    assert people.author("changesets", "publish", which).status == DONE
    assert stored() == ["shop", "token"]


def test_edit__somebody_else_was_quicker__4_and_the_text_is_kept(people: People) -> None:
    which = people.draft(cluster("pay"))
    variables = [f"{key}={value}" for key, value in people.other.variables.items()]
    words = ["changesets", "edit", which, "--title", "quicker"]
    quicker = shlex.join(["env", *variables, sys.executable, "-m", "xdsctl", "-q", *words])
    script = f'{quicker} >/dev/null\nsed -i "s/more time/slower/" "$1"'

    late = people.author("changesets", "edit", which, **people.editor(script))
    old = people.author("changesets", "edit", which, "--title", "x", "--version", "1")

    assert late.status == CONFLICT, late
    assert "Your text is in '" in late.err
    assert old.status == CONFLICT
    assert people.found(which)["title"] == "quicker"


def test_stale__says_what_moved_until_it_is_decided_by_name(people: People) -> None:
    publish(cluster("pay"), cluster("shop"))
    which = people.draft(cluster("pay", connect_timeout="2s"), cluster("shop", connect_timeout="2s"))
    publish(cluster("pay", connect_timeout="3s"), cluster("shop", connect_timeout="3s"))

    refused = people.author("changesets", "publish", which)
    shown = people.viewer("changesets", "get", which)
    unknown = people.author("changesets", "merge", which, "cluster/nobody=ours")
    wrong = [people.author("changesets", "merge", which, text).status for text in ("cluster/pay", "pay=ours", "x/y=z")]
    merged = people.author("changesets", "merge", which, "cluster/pay=ours", "cluster/shop=theirs")
    done = people.author("changesets", "publish", which)

    assert (refused.status, "stale" in refused.err) == (CONFLICT, True)
    assert "moved       cluster/pay: r1 -> r2, by " in shown.out
    assert (unknown.status, "cluster/nobody: error XDS" in unknown.err) == (NO, True)
    assert wrong == [USAGE, USAGE, USAGE]
    assert ": draft, version 2" in merged.out
    assert done.status == DONE
    timeouts = {row["name"]: row["manifest"]["connect_timeout"] for row in people.viewer("get", "-o", "json").data}
    assert timeouts == {"pay": "2s", "shop": "3s"}


def test_loss__publishing_and_scheduling_ask_by_the_number_of_clients(people: People) -> None:
    publish(cluster("pay"))
    Fleet(2).accept(held("pay", 1))
    digest()
    which = people.draft(more=("--delete", "cluster/pay"))

    shown = people.viewer("changesets", "get", which)
    patch = people.viewer("changesets", "diff", which)
    refused = people.author("changesets", "publish", which)
    planned = people.author("changesets", "schedule", which, "--not-before", "2d")
    scheduled = people.author("changesets", "schedule", which, "--not-before", "2d", "--accept-loss", "2")
    done = people.author("changesets", "publish", which, "--accept-loss", "2")

    assert "lost        2 of 2 connected clients would lose something (2 envoy 1.40)." in shown.out
    assert f"'xdsctl changesets publish {which}' will ask for --accept-loss 2." in patch.err
    assert refused.status == LOSS
    assert f"To do it nevertheless: xdsctl changesets publish {which} --accept-loss 2" in refused.err
    assert planned.status == LOSS
    assert scheduled.status == DONE, scheduled
    assert "It is published by itself from " in scheduled.err
    assert ": scheduled, " in scheduled.out
    assert done.status == DONE
    assert stored() == []


def test_frozen__publishing_is_refused_until_it_is_broken_with_a_reason(people: People) -> None:
    now = datetime.now(UTC)
    hours = {"from": now - timedelta(hours=1), "until": now + timedelta(hours=1)}
    which = people.draft(cluster("pay"))
    moments = {key: f"{moment:%Y-%m-%dT%H:%M:%SZ}" for key, moment in hours.items()}
    people.settings(freezes=[{**moments, "reason": "inventory"}])

    refused = people.admin("changesets", "publish", which)
    broken = people.admin("changesets", "publish", which, "--break-glass", "the shop is down")

    assert refused.status == CONFLICT
    assert "Here that is --break-glass REASON." in refused.err
    assert broken.status == DONE
    assert Change.objects.latest("pk").message.endswith("broke the freeze: the shop is down")


def test_reject_and_cancel__lead_back_to_a_draft_and_say_what_was_so_already(people: People) -> None:
    which = people.draft(cluster("pay"))
    people.author("changesets", "submit", which)

    silent = people.other("changesets", "reject", which)
    rejected = people.other("changesets", "reject", which, "--reason", "in seconds")
    again = people.other("changesets", "reject", which, "--reason", "in seconds")
    late = people.author("changesets", "submit", which)
    back = people.author("changesets", "cancel", which)

    assert silent.status == USAGE
    assert ": rejected, " in rejected.out
    assert again.err == "It was so already.\n"
    assert late.status == CONFLICT
    assert ": draft, " in back.out


def test_delete__asks_at_a_terminal_and_needs_yes_elsewhere(people: People) -> None:
    which = people.draft(cluster("pay"))

    piped = people.author("changesets", "delete", which)
    declined = at_a_terminal(people.author, "no", "changesets", "delete", which)
    there = people.found(which)["state"]
    done = people.author("changesets", "delete", which, "--yes", "-o", "json")

    assert piped.status == USAGE
    assert declined[0] == NO
    assert "title       more time" in declined[1]
    assert there == "draft"
    assert done.data == {"deleted": f"change-set/{which}"}
    assert people.viewer("changesets", "list").err == "Nothing found.\n"


def test_list__by_title__finds_those_with_exactly_this_one(people: People) -> None:
    mine = people.draft(cluster("pay"))
    people.author("changesets", "create", "--title", "more time for shop", "-f", people.file(cluster("shop")))

    assert people.viewer("changesets", "list", "--title", "more time", "-o", "name").out == f"{mine}\n"
    assert people.viewer("changesets", "list", "--state", "published", "-o", "json").data == []


def test_problems__of_files__with_file_and_line_and_nothing_is_made(people: People) -> None:
    bad = people.file(cluster("pay"), {**cluster("shop"), "conect_timeout": "1s"})
    create = ("changesets", "create", "--title", "x")

    refused = people.author(*create, "-f", bad)
    twice = people.author(*create, "-f", bad, "--delete", "pay")
    late = people.author(*create, "--not-before", "2d", "--expires", "1d")

    assert refused.status == NO
    assert f"{bad}:" in refused.err
    assert "cluster/shop" in refused.err or "conect_timeout" in refused.err
    assert (twice.status, "--delete takes TYPE/NAME" in twice.err) == (USAGE, True)
    assert late.status == NO
    assert people.author("changesets", "comment", NOWHERE, "x", "--line", "3").status == USAGE
    assert people.viewer("changesets", "list", "-o", "json").data == []


ACTS = (
    ("edit", "--title", "x"),
    ("merge", "cluster/pay=ours"),
    ("submit",),
    ("approve",),
    ("reject", "--reason", "why"),
    ("publish",),
    ("schedule", "--not-before", "1d"),
    ("cancel",),
    ("comment", "why"),
    ("delete", "--yes"),
)


@pytest.mark.parametrize("act", ACTS, ids=lambda act: str(act[0]))
def test_act__without_the_role_or_of_nothing__8_and_7_and_nothing_is_done(people: People, act: tuple[str, ...]) -> None:
    which = people.draft(cluster("pay"))
    word, *rest = act

    forbidden = people.viewer("changesets", word, which, *rest)
    absent = people.author("changesets", word, NOWHERE, *rest)

    assert forbidden.status == NOT_ACCEPTED, forbidden
    assert (absent.status, "There is no change set" in absent.err) == (NOT_THERE, True)
    assert (people.found(which)["version"], people.found(which)["reviews"]) == (1, [])


def test_change_set__of_another_tenant__is_not_there(people: People) -> None:
    which = people.draft(cluster("pay"))
    stranger = xdsctl_as(people.author.variables["XDSCTL_SERVER"], people.folder, Scope(Role.EDITOR, "prod"))

    assert [stranger("changesets", word, which).status for word in ("get", "diff", "submit", "publish")] == [
        NOT_THERE
    ] * 4
    assert stranger("changesets", "list").status == NOT_THERE


def test_hostile_content__is_printed_and_not_obeyed(people: People) -> None:
    which = people.draft(cluster("pay\u202eyap", alt_stat_name="a\x1b[2J\r"))

    shown = people.viewer("changesets", "get", which)
    patch = people.viewer("changesets", "diff", which)
    names = people.viewer("changesets", "diff", which, "-o", "name")

    for said in (shown, patch, names):
        assert "pay" in said.out
        assert not {"\x1b", "\u202e"} & set(said.out + said.err)


def test_rules_and_groups__from_the_files_that_get_prints__are_proposed_merged_and_published(people: People) -> None:
    keeper = people.admin
    assert keeper("create", "group", "edge", "--matcher", "node_cluster=edge", "--trust", "declared").status == DONE
    made = keeper("create", "rule", "--effect", "deny", "--pattern", "old", "-o", "json").data
    printed = keeper("get", "rule", str(made["id"]), "-o", "yaml").out
    changed = people.folder / "rule.yaml"
    changed.write_text(printed.replace("old", "pay*"))
    new = people.folder / "new.yaml"
    new.write_text("- {effect: allow, pattern: shop, client_groups: [core]}\n- {effect: hide, pattern: x}\n")
    group = people.folder / "group.yaml"
    group.write_text("key: core\nmatchers: [{node_cluster: core}]\ntrust: declared\n")
    files = ("--rule", str(changed), "--rule", str(new), "--group", str(group))

    refused = people.author("changesets", "create", "--title", "t", *files)
    which = keeper("changesets", "create", "--title", "t", *files, "--delete", "group/edge", "-o", "name").out.strip()
    patch = keeper("changesets", "diff", which)
    same = keeper("changesets", "edit", which, *files, "--delete", "group/edge")
    keeper("edit", "rule", str(made["id"]), "-f", "-", stdin="message: no\n")
    stale = keeper("changesets", "get", which)
    merged = keeper("changesets", "merge", which, f"rule/{made['id']}=ours")
    done = keeper("changesets", "publish", which)

    assert refused.status == NOT_ACCEPTED
    assert patch.status == NO
    assert "+pattern: pay*" in patch.out
    assert "already" in same.err
    assert f"rule/{made['id']}: r1 -> r2" in stale.out
    assert (merged.status, done.status) == (DONE, DONE)
    assert [row["pattern"] for row in keeper("get", "rules", "-o", "json").data] == ["pay*", "shop", "x"]
    assert [row["key"] for row in keeper("get", "groups", "-o", "json").data] == ["core"]


def test_rule_that_cannot_be__is_told_with_the_line_of_its_file(people: People) -> None:
    file = people.folder / "rules.yaml"
    file.write_text("- effect: deny\n  pattern: a\n- effect: deny\n  pattern: '***'\n")

    said = people.admin("changesets", "create", "--title", "t", "--rule", str(file))
    none = people.admin("changesets", "create", "--title", "t", "--delete", "rule/first")

    assert said.status == NO
    assert f"{file}:4" in said.err
    assert none.status == USAGE
