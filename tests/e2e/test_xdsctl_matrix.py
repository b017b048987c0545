"""Every command of xdsctl with each exit status it can have, against a running Parley (texts.md section 5).

The table must name each command that xdsctl has: a new one is in it, or the suite fails.
"""

import json
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
import yaml

from controlplane.api.views.schema import schema
from tests.e2e import proposals, route_case_files
from tests.support.manifests import api_listener, cluster, endpoints, route
from tests.support.ports import free_ports
from tests.support.stack import ROOT, START_S, Parley
from tests.support.waiting import eventually
from tests.support.xdsctl import (
    CONFLICT,
    DONE,
    LOSS,
    NO,
    NO_ANSWER,
    NOT_ACCEPTED,
    NOT_THERE,
    UNDECIDED,
    USAGE,
    Said,
    Xdsctl,
    asleep,
    dumping,
    watching,
    xdsctl_for,
)
from xdsctl.app import app

pytestmark = [pytest.mark.xdist_group("xdsctl"), pytest.mark.timeout(240)]

NOWHERE = "00000000-0000-0000-0000-000000000000"
# What each command is run with, by the exit status it ends with. Braces stand for members of the world below, and
# VARIABLE=value may go before a command. 2 is wrong usage and 3 a server that is away, for all of them alike.
ROWS: Mapping[str, Mapping[int, str]] = {
    "access rules": {DONE: "", NOT_THERE: "-e nowhere"},
    "access test": {DONE: "-f {cases}", NO: "-f {cases} -e shut"},
    "apply": {
        DONE: "-f {good}",
        NO: "-f {bad}",
        CONFLICT: "-f {changed} --base-epoch {epoch}",
        UNDECIDED: "-f {changed} --wait --timeout 0ms",
        LOSS: "-f {alone} --owner m-team --prune",
    },
    "audit": {DONE: "--since 1h", NOT_THERE: "-e nowhere"},
    "bootstrap": {DONE: "grpc --client me", NOT_THERE: "grpc --client me -e nowhere"},
    "label": {DONE: "cluster m-kept seen=yes", NOT_THERE: "cluster nobody seen=yes", USAGE: "cluster m-kept seen"},
    "search": {DONE: "m-kept", USAGE: "m-kept --kind nothing"},
    **proposals.ROWS,
    **route_case_files.ROWS,
    "channels list": {DONE: ""},
    "channels test": {DONE: "{channel}", NO: "{deaf_channel}", NOT_THERE: "nowhere"},
    "clients describe": {DONE: "m-reader", NOT_THERE: "nobody"},
    "clients diff": {DONE: "m-reader m-reader", NO: "m-reader m-refuser"},
    "clients list": {DONE: "", NOT_THERE: "-e nowhere"},
    "comments add": {DONE: "seen --incident {incident}", NO: "seen --incident nothing"},
    "comments delete": {DONE: "{spare_comment}", NOT_THERE: NOWHERE},
    "comments edit": {DONE: "{comment} mended", NOT_THERE: f"{NOWHERE} mended"},
    "comments list": {DONE: "--resource cluster/m", NOT_THERE: "--incident nothing"},
    "compare": {DONE: "{epoch} {epoch}", NO: "{before} {epoch}", NOT_THERE: "1 999999", USAGE: ""},
    "context list": {DONE: ""},
    "context remove": {DONE: "spare", USAGE: "elsewhere"},
    "context set": {DONE: "spare --url http://127.0.0.1:1"},
    "context use": {DONE: "there", USAGE: "elsewhere"},
    "create client-token": {DONE: "m-subject", NO: "m-subject -e nowhere"},
    "create environment": {DONE: "m-made --default-effect allow", NO: "M_made", CONFLICT: "held"},
    "create group": {
        DONE: "m-group --matcher identity=m-*",
        NO: "m-group2 --matcher colour=blue",
        CONFLICT: "m-crowd --matcher identity=m-*",
    },
    "create rule": {
        DONE: "--effect allow --pattern m-nothing*",
        NO: "--effect maybe --pattern m-nothing*",
        CONFLICT: "--effect allow --pattern m-nothing* --position 5000",
        LOSS: "--effect deny --pattern m --position 1",
    },
    "create token": {
        DONE: "m-pipeline --scope viewer",
        NO: "m-pipeline2 --scope king",
        CONFLICT: "m-taken --scope viewer",
    },
    "delete": {DONE: "cluster m-doomed", NOT_THERE: "cluster nobody", CONFLICT: "cluster m -e held", LOSS: "cluster m"},
    "delete client-token": {DONE: "{client_token} --yes", NOT_THERE: "999999 --yes"},
    "delete environment": {DONE: "m-env --yes", NOT_THERE: "nowhere --yes", CONFLICT: "default --yes"},
    "delete group": {DONE: "m-unused --yes", NOT_THERE: "nobody --yes", CONFLICT: "m-crowd --yes"},
    "delete rule": {DONE: "{spare_rule} --yes", NOT_THERE: "999999 --yes"},
    "delete token": {DONE: "{token_id} --yes", NOT_THERE: "999999 --yes"},
    "describe": {DONE: "cluster m", NOT_THERE: "cluster nobody"},
    "describe environment": {DONE: "default", NOT_THERE: "nowhere"},
    "describe group": {DONE: "m-crowd", NOT_THERE: "nobody"},
    "describe rule": {DONE: "{rule}", NOT_THERE: "999999"},
    "diff": {DONE: "-f {good}", NO: "-f {changed}"},
    "doctor": {DONE: "", NO: "--token nonsense"},
    "edit": {
        DONE: "EDITOR={editor} cluster m-edited",
        NO: "EDITOR={clumsy} cluster m-edited",
        CONFLICT: "EDITOR={editor} cluster m -e held",
    },
    "edit environment": {DONE: "shut -f {policy}", NO: "shut -f {colour}", LOSS: "default -f {shutting}"},
    "edit group": {DONE: "m-crowd -f {matchers}", NO: "m-crowd -f {colour}"},
    "edit rule": {
        DONE: "{rule} -f {disabled}",
        NO: "{rule} -f {colour}",
        CONFLICT: "{other_rule} -f {moved}",
        LOSS: "{rule} -f {denying}",
    },
    "environments": {DONE: ""},
    "explain": {DONE: "m-reader cluster m", NO: "m-reader cluster m-refused", UNDECIDED: "m-gone cluster m"},
    "explain request": {DONE: "xds:///m", NO: "xds:///nowhere", USAGE: "m"},
    "get": {DONE: "cluster", NOT_THERE: "cluster nobody"},
    "get audit": {DONE: "", NOT_THERE: "-e nowhere"},
    "get change": {DONE: "--since 1h --kind resources", NO: "--since tomorrow", NOT_THERE: "-e nowhere"},
    "get client": {DONE: "--of cluster/m", NOT_THERE: "--of cluster/m -e nowhere", USAGE: "--of m"},
    "get client-token": {DONE: "", NOT_THERE: "999999"},
    "get environment": {DONE: "", NOT_THERE: "nowhere"},
    "get group": {DONE: "", NOT_THERE: "nobody"},
    "get resource": {DONE: "--client m-reader", NOT_THERE: "--client nobody"},
    "get rule": {DONE: "", NOT_THERE: "999999"},
    "get token": {DONE: "", NOT_THERE: "999999"},
    "history": {DONE: "cluster m", NOT_THERE: "cluster m -e nowhere"},
    "graph": {DONE: "cluster m", NOT_THERE: "-e nowhere"},
    "incidents acknowledge": {DONE: "{incident}", NOT_THERE: "nothing"},
    "incidents assign": {DONE: "{incident} --team m-team", NOT_THERE: "nothing --team m-team"},
    "incidents list": {DONE: "", NOT_THERE: "-e nowhere"},
    "incidents mute": {DONE: "{incident} --until 1h --reason known", NOT_THERE: "nothing --until 1h --reason known"},
    "incidents quarantine": {DONE: "{incident} --reason refused", NOT_THERE: "nothing --reason refused"},
    "incidents release": {DONE: "{incident} --reason repaired", NOT_THERE: "nothing --reason repaired"},
    "incidents resolve": {DONE: "{incident}", NOT_THERE: "nothing"},
    "incidents archive": {DONE: "{incident}", NOT_THERE: "nothing"},
    "incidents show": {DONE: "{incident}", NOT_THERE: "nothing"},
    "incidents unmute": {DONE: "{incident}", NOT_THERE: "nothing"},
    "inspect": {DONE: "--envoy-admin {envoy} --report", NOT_THERE: "--envoy-admin {envoy} --node-id nobody --report"},
    "login": {DONE: "there < {token}", NOT_ACCEPTED: "there < nonsense"},
    "ps": {DONE: "", NOT_THERE: "-e nowhere"},
    "rehearse": {
        DONE: "-f {good} --client m-reader",
        NO: "-f {good} --client nobody",
        UNDECIDED: "-f {alone} --client m-reader",  # it does not ask for it
    },
    "resolve": {
        DONE: "xds:///m --ads {ads}",
        NO: "xds:///nowhere --ads {ads}",
        UNDECIDED: "xds:///m --ads {ads} --timeout 0ms",
    },
    "rollout history": {DONE: "--revision {epoch}", NOT_THERE: "cluster/m --revision 999999"},
    "rollout status": {
        DONE: "{change} --spread",
        NOT_THERE: "00000000-0000-0000-0000-000000000000",
        UNDECIDED: "{unanswered} --wait --timeout 0ms",
    },
    "rollout undo": {
        DONE: "--to {last} --reason again --no-hold",
        NOT_THERE: "--to 999999 --reason again",
        UNDECIDED: "--to {epoch} --reason again --no-hold --wait --timeout 0ms",
        LOSS: "--to {before} --reason again",
    },
    "rollout release": {DONE: "", NOT_THERE: "-e nowhere"},
    "rollouts abort": {DONE: "{rollout_abort} --reason why", NOT_THERE: f"{NOWHERE} --reason why"},
    "rollouts list": {DONE: "", NOT_THERE: "-e nowhere"},
    "rollouts status": {
        DONE: "{rollout_pause}",
        NOT_THERE: NOWHERE,
        UNDECIDED: "{rollout_pause} --wait --timeout 0ms",
    },
    **{
        f"rollouts {act}": {
            DONE: f"{{rollout_{act}}} --reason why",
            NOT_THERE: f"{NOWHERE} --reason why",
            CONFLICT: "{rollout_over} --reason why",
        }
        for act in ("advance", "approve", "pause", "reject", "resume")
    },
    "snapshots export": {DONE: "{epoch}", NOT_THERE: "999999"},
    "snapshots list": {DONE: "", NOT_THERE: "-e nowhere"},
    "snapshots show": {DONE: "{epoch}", NOT_THERE: "999999"},
    "snapshot export": {DONE: "{epoch}", NOT_THERE: "999999"},
    "tail": {DONE: "--timeout 1s", NOT_THERE: "--timeout 1s -e nowhere"},
    "ticket-links add": {
        DONE: "M-{{number}} https://m.example/{{number}}",
        NO: "M-{{number}} ftp://m.example/{{number}}",
    },
    "ticket-links delete": {DONE: "{ticket_link}", NOT_THERE: "999999"},
    "ticket-links list": {DONE: ""},
    "undo": {
        DONE: "{undoable} --reason again",
        NOT_THERE: "00000000-0000-0000-0000-000000000000 --reason again",
        CONFLICT: "{change} --reason again",  # what it wrote was written again since
        LOSS: "{kept} --reason again",
        UNDECIDED: "{unanswered} --reason again --wait --timeout 0ms",
    },
    "validate": {DONE: "-f {good}", NO: "-f {bad}", CONFLICT: "-f {good} -e held"},
    "version": {DONE: ""},
    "watch": {
        DONE: "cluster m --ads {ads} --once",
        NO: "cluster nobody --ads {ads} --once",
        UNDECIDED: "cluster m --ads {ads} --once --timeout 0ms",
    },
}
# Those that ask no server, or another one than --server names.
LOCAL = {"context list", "context remove", "context set", "context use", "login"}
# Those that wait for clients, of which one is asleep.
UNANSWERED = {
    (command, UNDECIDED) for command in ("apply", "changesets publish", "rollout status", "rollout undo", "undo")
}
OVER_XDS = {"watch", "resolve"}
# Those that write one document a line, as long as they run: perhaps none (what `tail` writes: tests/e2e/test_tail.py).
IN_LINES = {"tail"}
SCHEMAS = json.loads((ROOT / "xdsctl" / "output.schema.json").read_text())


@dataclass(frozen=True)
class World:
    """A fleet of three, of which one stays, one refused something and one left, and files for and against it."""

    xdsctl: Xdsctl
    members: dict[str, str]
    reader: "subprocess.Popen[bytes]"

    def run(self, command: str, status: int, *more: str, **members: str) -> Said:
        """A command with the arguments that lead to this status."""
        words, _, stdin = ROWS[command][status].format(**self.members, **members).partition(" < ")
        arguments = shlex.split(words)
        variables = dict(each.split("=", 1) for each in arguments if each.startswith("EDITOR="))
        rest = [each for each in arguments if not each.startswith("EDITOR=")]
        return self.xdsctl(
            *command.split(), *rest, *more, stdin=f"{stdin}\n" if stdin else None, VISUAL="", **variables
        )


@pytest.fixture(scope="module")
def world(xdsctl_server: Parley, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    parley, folder = xdsctl_server, tmp_path_factory.mktemp("matrix")
    xdsctl, files = xdsctl_for(parley, folder), _files(folder)
    singles = [cluster(name) for name in ("m", "m-edited", "m-refused", "m-doomed")]
    tree = [api_listener("m", "m-routes"), route("m-routes", "m-eds"), cluster("m-eds", eds=True)]
    before = parley.apply_and_publish(cluster("m-before"))
    kept = parley.apply_and_publish(cluster("m-kept"))
    first = parley.apply_and_publish(*singles, *tree, endpoints("m-eds", 9000))
    for key, effect in (("held", "allow"), ("shut", "deny")):
        assert parley.call("POST", "/environments", {"key": key, "default_effect": effect}).status == 201
    assert parley.call("PUT", "/environments/held/resources/cluster/m", cluster("m")).status == 202
    assert parley.call("PATCH", "/environments/held", {"hold": "a drill"}).status == 200
    for name in ("spare", "there"):
        assert xdsctl("context", "set", name, "--url", f"http://127.0.0.1:{parley.web_port}").status == DONE
    ads = f"127.0.0.1:{parley.ads_port}"
    with watching(parley, "m-reader", "m", "m-kept") as reader, dumping("m-reader") as envoy:
        # These two come, say what they have to say, and leave.
        at_once = ("--ads", ads, "--once", "--node")
        assert xdsctl("watch", "cluster", "m", *at_once, "m-gone").status == DONE
        drill = ("--nack", "m-refused=too blue")
        assert xdsctl("watch", "cluster", "m-refused", *at_once, "m-refuser", *drill).status == NO
        for status, row in ROWS["explain"].items():
            eventually(lambda row=row: xdsctl("explain", *row.split()).status, status.__eq__, within_s=START_S)  # type: ignore[misc]
        [incident] = eventually(
            lambda: [each for each in xdsctl("incidents", "list", "-o", "json").data if each["name"] == "m-refused"],
            within_s=START_S,
        )
        undoable = parley.apply(cluster("m-undone"))
        assert xdsctl("route-cases", "apply", "-f", files["route_cases"]).status == DONE
        owned = xdsctl("apply", "-f", files["good"], "--owner", "m-team", "-o", "name")
        last = parley.published(owned.out.strip())
        members = {
            "ads": ads,
            "envoy": envoy,
            "change": first["id"],
            "undoable": undoable,
            "kept": kept["id"],
            "before": str(before["epoch"]),
            "epoch": str(first["epoch"]),
            "last": str(last["epoch"]),
            "incident": incident["id"],
            "token": parley.token,
            **files,
        }
        members |= {**_governed(parley), **_rolling(parley), **_heard(parley, envoy), **proposals.proposed(parley)}
        yield World(xdsctl, members, reader)
        _ungoverned(parley)


def _governed(parley: Parley) -> dict[str, str]:
    """Groups, rules, tokens and an environment to look at and to delete, and the ids of those that have one."""

    def made(path: str, body: dict[str, object]) -> str:
        answer = parley.call("POST", path, body)
        assert answer.status == 201, answer
        return str(answer.body.get("id", ""))

    here, rule = "/environments/default", {"effect": "allow", "pattern": "m"}
    made("/environments", {"key": "m-env"})
    for key in ("m-crowd", "m-unused"):
        made(f"{here}/client-groups", {"key": key, "matchers": [{"identity": "m-*"}], "trust": "verified"})
    made(f"{here}/client-groups", {"key": "m-stage", "matchers": [{"node_id": "m-reader"}], "trust": "declared"})
    assert parley.call("PATCH", here, {"rollout": {"rehearsal_group": "m-stage"}}).status == 200
    said: dict[str, object] = {"resource": "cluster/m", "environment": "default", "text": "seen"}
    return {
        "comment": made("/comments", said),
        "spare_comment": made("/comments", said),
        "ticket_link": made("/ticket-links", {"form": "K-{number}", "url": "https://k.example/{number}"}),
        "rule": made(f"{here}/rules", {**rule, "position": 5000}),
        "other_rule": made(f"{here}/rules", {**rule, "position": 6000, "client_groups": ["m-crowd"]}),
        "spare_rule": made(f"{here}/rules", {**rule, "position": 7000}),
        "token_id": made("/tokens", {"name": "m-taken", "scopes": [{"role": "viewer", "environment": "default"}]}),
        "client_token": made("/client-tokens", {"subject": "m-reader", "environment": "default"}),
    }


def _rolling(parley: Parley) -> dict[str, str]:
    """An open rollout that waits for a person for each command that acts on one, in an environment of its own, and one
    that is over.
    """
    settings = {"mode": "steps", "steps": [{"clients": 1, "approve": True}, {"percent": 100}]}
    acts = ("abort", "advance", "approve", "over", "pause", "reject", "resume")
    for act in acts:
        made = parley.call("POST", "/environments", {"key": f"m-{act}", "rollout": settings})
        assert made.status == 201, made
        assert parley.call("PUT", f"/environments/m-{act}/resources/cluster/m", cluster("m")).status == 202

    def opened(act: str) -> str:
        path = f"/environments/m-{act}/rollouts?state=waiting"
        [row] = eventually(lambda: parley.call("GET", path).body["results"], within_s=START_S)
        return str(row["id"])

    found = {f"rollout_{act}": opened(act) for act in acts}
    assert parley.call("POST", f"/rollouts/{found['rollout_over']}/abort", {"reason": "a drill"}).status == 200
    return found


def _heard(parley: Parley, receiver: str) -> dict[str, str]:
    """A channel to a receiver that takes what it is sent, and one to a receiver that does not."""
    for name, path in (("m-channel", "heard"), ("m-deaf", "deaf")):
        body = {"name": name, "kind": "webhook", "target": f"{receiver}/{path}", "environments": ["m-env"]}
        assert parley.call("POST", "/channels", body).status == 201
    return {"channel": "m-channel", "deaf_channel": "m-deaf"}


def _ungoverned(parley: Parley) -> None:
    """No rule of these tests is left: other modules use the same server."""
    for rule in parley.call("GET", "/environments/default/rules?limit=1000").body["results"]:
        if rule["pattern"].startswith("m"):
            assert parley.call("DELETE", f"/environments/default/rules/{rule['id']}").status == 200


def _files(folder: Path) -> dict[str, str]:
    case = {"node_id": "anybody", "type": "cluster", "name": "m", "expect": "allow"}
    texts = {
        "good": yaml.safe_dump(cluster("m", connect_timeout="2s")),
        "changed": yaml.safe_dump(cluster("m", connect_timeout="3s")),
        "bad": yaml.safe_dump({**cluster("m"), "conect_timeout": "1s"}),
        "alone": yaml.safe_dump(cluster("m-alone")),
        "cases": yaml.safe_dump({"cases": [case]}),
        **route_case_files.TEXTS,
        "colour": "colour: blue",
        "policy": "quarantine: suggest",
        "shutting": "default_effect: deny",
        "matchers": yaml.safe_dump({"matchers": [{"identity": "m-*"}, {"identity": "n-*"}]}),
        "disabled": "enabled: false",
        "moved": "position: 5000",
        "denying": "effect: deny\nenabled: true",
        # Each time something else.
        "editor": '#!/bin/sh\nsed -i "s/connect_timeout: .*/connect_timeout: $(date +%s)s/" "$1"\n',
        "clumsy_set": proposals.CLUMSY,
        "clumsy": '#!/bin/sh\necho "conect_timeout: 2s" >> "$1"\n',
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    return {name: str(folder / name) for name in texts}


def commands() -> Iterator[str]:
    """The leaves of the tree of commands."""

    def leaves(command: Any, path: tuple[str, ...]) -> Iterator[str]:
        for name, each in getattr(command, "commands", {}).items():
            yield from leaves(each, (*path, name))
        if not hasattr(command, "commands"):
            yield " ".join(path)

    return leaves(typer.main.get_command(app), ())


def test_matrix__names_every_command_and_what_it_writes() -> None:
    found = set(commands())

    assert ROWS.keys() == found
    assert SCHEMAS["commands"].keys() == found
    jsonschema.Draft202012Validator.check_schema(SCHEMAS)


def conforms(command: str, said: Said) -> bool:
    """What it wrote is what it may write; when it was not done, that may be the server's problem, or nothing."""
    mine = SCHEMAS["commands"][command]
    if not said.out.strip():  # a hidden prompt ends in a line feed where there is no terminal
        return mine is False or said.status != DONE or command in IN_LINES
    allowed = mine if said.status == DONE else {"anyOf": [mine, {"$ref": "#/components/schemas/ProblemOut"}]}
    shape = {"allOf": [allowed], "$defs": SCHEMAS["$defs"], "components": schema()["components"]}
    jsonschema.Draft202012Validator(shape).validate(said.data)
    return True


@pytest.mark.parametrize(
    ("command", "status"),
    [(command, status) for command, row in ROWS.items() for status in row if (command, status) not in UNANSWERED],
)
def test_command__as_the_table_says__ends_with_its_status_and_data_of_its_shape(
    world: World, command: str, status: int
) -> None:
    said = world.run(command, status, "-o", "json")

    assert said.status == status, said
    assert conforms(command, said), said
    assert (said.err != "") or status in {DONE, NO, UNDECIDED}


@pytest.mark.parametrize(("command", "status"), sorted(UNANSWERED))
def test_command__fleet_that_does_not_answer__undecided(
    world: World, xdsctl_server: Parley, command: str, status: int
) -> None:
    with asleep(world.reader):
        xdsctl_server.apply(cluster("m", connect_timeout="5s"))
        unanswered = xdsctl_server.apply_and_publish(cluster("m", connect_timeout="4s"))["id"]
        said = world.run(command, status, "-o", "json", unanswered=unanswered)
    xdsctl_server.apply_and_publish(cluster("m", connect_timeout="2s"))

    assert said.status == UNDECIDED, said
    assert conforms(command, said)
    assert "goes on without this command" in said.err


@pytest.mark.parametrize("command", ROWS)
def test_any_command__wrong_usage__2(world: World, command: str) -> None:
    assert world.xdsctl(*command.split(), "--nonsense").status == USAGE


@pytest.mark.parametrize("command", sorted(ROWS.keys() - LOCAL))
def test_any_command__server_is_away__one_sentence_and_3(world: World, command: str) -> None:
    (port,) = free_ports(1)
    away = f"127.0.0.1:{port}"
    there = World(world.xdsctl, {**world.members, "ads": away}, world.reader)

    said = there.run(command, DONE, "--server", f"http://{away}")

    assert said.status == NO_ANSWER, said
    assert said.err.count("\n") == 1
    assert "answer" in said.err
    if command not in OVER_XDS:
        assert away in said.err + said.out


@pytest.mark.parametrize("command", sorted(ROWS.keys() - LOCAL - OVER_XDS - {"doctor", "version"}))
def test_any_command__token_of_nobody__not_accepted_and_not_worth_another_try(world: World, command: str) -> None:
    said = world.run(command, DONE, "--token", "parley_of_nobody")

    assert said.status == NOT_ACCEPTED, said
    assert "XDSCTL_TOKEN" in said.err


@pytest.mark.parametrize("form", ["table", "name", "github"])
def test_status__of_what_only_looks__is_the_same_in_every_format(world: World, form: str) -> None:
    looks = ("diff", "validate", "explain", "access test", "changesets diff")

    for command in looks:
        for status in ROWS[command]:
            # What rows before this one wrote or rehearsed may still be on its way to the client that explain is about.
            eventually(
                lambda command=command, status=status: world.run(command, status, "-o", form).status,  # type: ignore[misc]
                status.__eq__,
                within_s=START_S,
            )
