"""What the commands of xdsctl do to a running Parley and what they say (texts.md section 5). Each command with each
exit status is in test_xdsctl_matrix.py.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.manifests import cluster, endpoints, listener, route, tls_secret
from tests.support.ports import free_ports
from tests.support.stack import START_S, Parley, running_up
from tests.support.waiting import eventually
from tests.support.xdsctl import (
    CONFLICT,
    DONE,
    NO,
    NO_ANSWER,
    NOT_ACCEPTED,
    NOT_THERE,
    UNDECIDED,
    USAGE,
    Said,
    Xdsctl,
    watching,
    xdsctl_for,
)

pytestmark = pytest.mark.xdist_group("xdsctl")


@pytest.fixture
def parley(xdsctl_server: Parley) -> Parley:
    return xdsctl_server


@pytest.fixture
def xdsctl(parley: Parley, tmp_path: Path) -> Xdsctl:
    return xdsctl_for(parley, tmp_path)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "resources"
    folder.mkdir()
    (folder / "clusters.yaml").write_text(yaml.safe_dump_all([cluster("pay"), cluster("cart")]))
    (folder / "edge.json").write_text(json.dumps([route("edge", "pay"), listener("edge", "edge", 10000)]))
    return folder


def applied(xdsctl: Xdsctl, *resources: Any, more: tuple[str, ...] = ()) -> Said:
    return xdsctl("apply", "-f", "-", "-m", "test", *more, stdin=yaml.safe_dump_all(resources))


def test_apply__folder__one_change_and_then_nothing(xdsctl: Xdsctl, files: Path) -> None:
    first = xdsctl("apply", "-f", str(files), "-m", "first", "--wait", "--timeout", "30s", "-o", "json")
    again = xdsctl("apply", "-f", str(files))

    assert (first.status, first.data["state"]) == (DONE, "settled") or first.data["state"] == "unchanged"
    assert (again.status, again.err) == (DONE, "'default' already is as the files say.\n")


def test_apply__base_that_moved__conflict_that_names_what_moved(xdsctl: Xdsctl) -> None:
    applied(xdsctl, cluster("base"), more=("--wait", "--timeout", "30s"))
    reviewed = xdsctl.epoch()
    applied(xdsctl, cluster("base", connect_timeout="2s"), more=("--wait", "--timeout", "30s"))

    said = applied(xdsctl, cluster("base", connect_timeout="3s"), more=("--base-epoch", str(reviewed)))

    assert said.status == CONFLICT
    assert "base" in said.err


def test_apply__time_runs_out__undecided(xdsctl: Xdsctl) -> None:
    said = applied(xdsctl, cluster("late"), more=("--wait", "--timeout", "0s"))

    assert said.status == UNDECIDED
    assert "goes on without this command" in said.err


def test_apply__mistakes_in_two_files__each_with_its_line_and_nothing_stored(xdsctl: Xdsctl, files: Path) -> None:
    (files / "clusters.yaml").write_text("# ours\n" + yaml.safe_dump({**cluster("new"), "conect_timeout": "1s"}))
    (files / "edge.json").write_text(json.dumps([{**route("edge", "pay"), "virtual_hosts": 7}], indent=1))

    said = xdsctl("apply", "-f", str(files))

    assert said.status == NO
    assert "clusters.yaml:3:1: error XDS" in said.err
    assert "Did you mean" in said.err
    assert "edge.json:" in said.err
    assert xdsctl("get", "cluster", "new").status == NOT_THERE


def test_apply__github_format__annotates_the_line(xdsctl: Xdsctl, files: Path) -> None:
    (files / "clusters.yaml").write_text(yaml.safe_dump({**cluster("new"), "conect_timeout": "1s"}))

    said = xdsctl("apply", "-f", str(files / "clusters.yaml"), "-o", "github")

    assert said.status == NO
    assert f"::error file={files}/clusters.yaml,line=2,col=1,title=XDS" in said.out


def test_apply__strict__a_reference_to_nothing_is_refused_with_its_line(xdsctl: Xdsctl, files: Path) -> None:
    text = yaml.safe_dump(route("strict", "never-was"))
    (files / "route.yaml").write_text(text)
    line = 1 + next(number for number, each in enumerate(text.splitlines()) if "never-was" in each)

    refused = xdsctl("apply", "-f", str(files / "route.yaml"), "--strict")
    taken = xdsctl("apply", "-f", str(files / "route.yaml"))

    assert (refused.status, taken.status) == (NO, DONE)
    assert f"route.yaml:{line}:" in refused.err
    assert "error XDS2002" in refused.err


def test_apply__dry_run__changes_nothing(xdsctl: Xdsctl) -> None:
    said = applied(xdsctl, cluster("dry"), more=("--dry-run", "server", "-o", "name"))

    assert (said.status, said.out) == (DONE, "cluster/dry\n")
    assert "\nNot judged: whether an Envoy takes cluster/dry (deep validation is off in 'default'). An adm" in said.err
    assert xdsctl("get", "cluster", "dry").status == NOT_THERE


def test_diff__something_differs__patch_and_status_1_else_0(xdsctl: Xdsctl) -> None:
    applied(xdsctl, cluster("diff"))

    changed = xdsctl("diff", "-f", "-", stdin=yaml.safe_dump(cluster("diff", connect_timeout="7s")))
    same = xdsctl("diff", "-f", "-", stdin=yaml.safe_dump(cluster("diff")))

    assert changed.status == NO
    assert changed.out.startswith("--- a/cluster/diff\n+++ b/cluster/diff\n")
    assert "\n-connect_timeout: 1s\n+connect_timeout: 7s\n" in changed.out
    assert (same.status, same.out) == (DONE, "")


@pytest.mark.parametrize(
    ("where", "said_of_it"),
    [
        ((), "4 resources checked against 'default': valid.\n"),
        (
            ("--offline",),
            "4 resources checked: valid.\nNot judged without a server: whether what they refer to exists;",
        ),
    ],
)
def test_validate__sound_and_unsound__syntax_is_judged_with_and_without_server(
    xdsctl: Xdsctl, files: Path, where: tuple[str, ...], said_of_it: str
) -> None:
    sound = xdsctl("validate", "-f", str(files), *where)
    (files / "bad.yaml").write_text(yaml.safe_dump({**cluster("x"), "conect_timeout": "1s"}))
    unsound = xdsctl("validate", "-f", str(files), "-o", "json", *where)

    assert (sound.status, sound.err[: len(said_of_it)]) == (DONE, said_of_it)
    assert (unsound.status, unsound.data["valid"]) == (NO, False)
    assert (unsound.data["environment"] is None, unsound.data["not_judged"] != []) == (bool(where), bool(where))
    assert [(each["line"], each["code"][:3]) for each in unsound.data["findings"]] == [(2, "XDS")]
    assert unsound.data["findings"][0]["file"].endswith("bad.yaml")


JUDGED: dict[str, tuple[list[Any], tuple[str, ...], int]] = {
    "sound": ([cluster("v-sound")], (), DONE),
    "field": ([{**cluster("v-field"), "conect_timeout": "1s"}, cluster("v-field", lb_policy="X")], (), NO),
    "twice": ([cluster("v-twice"), cluster("v-twice")], (), NO),
    "missing reference": ([route("v-route", "never-was")], (), DONE),
    "missing reference, strictly": ([route("v-route", "never-was")], ("--strict",), NO),
    "secret nobody may read": ([tls_secret("v-secret", "value")], (), DONE),
    "owner that moves": ([cluster("v-owned", connect_timeout="9s")], ("--owner", "team-b"), DONE),
    "link-local": ([endpoints("v-metadata", 80, address="169.254.169.254")], (), NO),
    "environment that is held": ([cluster("v-held")], ("-e", "v-held"), CONFLICT),
    "environment that is not there": ([cluster("v")], ("-e", "nowhere"), NOT_THERE),
}
# Of the others something is found.
NOTHING_FOUND = {
    "sound",
    "missing reference",
    "owner that moves",
    "environment that is held",
    "environment that is not there",
}


@pytest.mark.parametrize("case", JUDGED)
def test_validate__against_an_environment__finds_what_a_dry_run_of_apply_finds_and_ends_as_it_does(
    xdsctl: Xdsctl, parley: Parley, case: str
) -> None:
    resources, options, status = JUDGED[case]
    if "v-held" in options:
        parley.call("POST", "/environments", {"key": "v-held"})
        parley.call("PATCH", "/environments/v-held", {"hold": "a drill"})
    applied(xdsctl, cluster("v-owned"), more=("--owner", "team-a"))
    files = ("-f", "-", *options)
    text = yaml.safe_dump_all(resources)

    judged = xdsctl("validate", *files, "-o", "github", stdin=text)
    tried = xdsctl("apply", *files, "--dry-run", "server", "-o", "github", stdin=text)

    found = [[line for line in said.out.splitlines() if line.startswith("::")] for said in (judged, tried)]
    assert (judged.status, tried.status) == (status, status)
    assert found[0] == found[1]
    assert bool(found[0]) == (case not in NOTHING_FOUND)
    assert xdsctl("get", "cluster", "v-sound").status == NOT_THERE


def test_validate__token_that_may_not_apply__8_and_the_way_without_a_server(xdsctl: Xdsctl, parley: Parley) -> None:
    made = parley.call("POST", "/tokens", {"name": "looks", "scopes": [{"role": "viewer", "environment": "default"}]})

    said = xdsctl("validate", "-f", "-", "--token", made.body["token"], stdin=yaml.safe_dump(cluster("no")))

    assert said.status == NOT_ACCEPTED
    assert "editor" in said.err
    assert "validate --offline" in said.err


def test_validate__file_that_is_no_yaml__says_the_line(xdsctl: Xdsctl, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("name: [\n")

    said = xdsctl("validate", "-f", str(tmp_path / "broken.yaml"), "--offline")

    assert said.status == NO
    assert "broken.yaml:" in said.err


@pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name", "github"])
def test_get__any_format__same_status(xdsctl: Xdsctl, form: str) -> None:
    applied(xdsctl, cluster("formed"))

    assert xdsctl("get", "cluster", "formed", "-o", form).status == DONE
    assert xdsctl("get", "cluster", "nobody", "-o", form).status == NOT_THERE


def test_get__list_as_yaml__is_what_apply_takes(xdsctl: Xdsctl) -> None:
    applied(xdsctl, cluster("copied"))

    listed = xdsctl("get", "-o", "yaml")
    again = xdsctl("apply", "-f", "-", stdin=listed.out)

    assert "copied" in listed.out
    assert (again.status, again.err) == (DONE, "'default' already is as the files say.\n")


def test_describe_history_edit_delete__one_resource_through_its_life(xdsctl: Xdsctl, tmp_path: Path) -> None:
    applied(xdsctl, cluster("life"))
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/connect_timeout: 1s/connect_timeout: 5s/" "$1"\n')
    editor.chmod(0o755)

    edited = xdsctl("edit", "cluster", "life", "-m", "slower", EDITOR=str(editor), VISUAL="")
    described = xdsctl("describe", "cluster", "life")
    history = xdsctl("history", "cluster", "life", "-o", "json")
    deleted = xdsctl("delete", "cluster", "life")

    assert (edited.status, described.status, history.status, deleted.status) == (DONE, DONE, DONE, DONE)
    assert "connect_timeout: 5s" in described.out
    assert [row["message"] for row in history.data] == ["slower", "test"]
    assert xdsctl("get", "cluster", "life").status == NOT_THERE
    assert xdsctl("delete", "cluster", "life").status == NOT_THERE


def test_edit__mistake__keeps_the_text_and_says_where(xdsctl: Xdsctl, tmp_path: Path) -> None:
    applied(xdsctl, cluster("careful"))
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\necho "conect_timeout: 2s" >> "$1"\n')
    editor.chmod(0o755)

    said = xdsctl("edit", "cluster", "careful", EDITOR=str(editor), VISUAL="")

    assert said.status == NO
    kept = Path(said.err.rsplit("Your text is in '", 1)[1].split("'", 1)[0])
    assert "conect_timeout: 2s" in kept.read_text()
    kept.unlink()


@pytest.fixture(scope="module")
def empty(xdsctl_server: Parley) -> str:
    """An environment without clients and incidents."""
    assert xdsctl_server.call("POST", "/environments", {"key": "empty"}).status == 201
    return "empty"


def test_clients_and_incidents__none_yet__say_so(xdsctl: Xdsctl, empty: str) -> None:
    for command in (("clients", "list"), ("ps",), ("incidents", "list")):
        said = xdsctl(*command, "-e", empty)
        assert (said.status, said.out, said.err) == (DONE, "", "Nothing found.\n")


def test_explain__what_clients_have_on_the_wire__0_1_and_5(xdsctl: Xdsctl, parley: Parley) -> None:
    rule = {"pattern": "explained-secretly", "effect": "deny", "types": ["cluster"], "message": "ask the payments team"}
    assert parley.call("POST", "/environments/default/rules", rule).status == 201
    parley.apply_and_publish(cluster("explained"), cluster("explained-secretly"))
    names = ("explained", "explained-secretly", "explained-never")

    def explained(node: str, name: str, status: int, words: str = "") -> Said:
        """The answer with this status and these words: "no" is also said of what was sent and not answered yet."""
        return eventually(
            lambda: xdsctl("explain", node, "cluster", name),
            lambda said: said.status == status and bool(said.out) and words in said.out,
            within_s=20,
        )

    with (
        watching(parley, "explain-1", *names),
        watching(parley, "explain-2", "explained", "--nack", "explained=too blue"),
    ):
        eventually(
            lambda: {row["node_id"] for row in xdsctl("ps", "-o", "json").data},
            lambda nodes: {"explain-1", "explain-2"} <= nodes,
            within_s=START_S,
        )
        has = explained("explain-1", "explained", DONE)
        refuses = explained("explain-2", "explained", NO, "It refused this content")
        denied, absent = (explained("explain-1", name, NO) for name in names[1:])
        unasked = explained("explain-2", "explained-never", NO)
    gone = explained("explain-1", "explained", UNDECIDED)
    wire = xdsctl("watch", "cluster", *names[1:], "--ads", f"127.0.0.1:{parley.ads_port}", "--once", "-o", "json").data

    assert has.out.startswith("YES     client explain-1 (env default) has cluster 'explained'\n ok   1 identity ")
    assert "\n FAIL 7 answered     It refused this content" in refuses.out
    assert "too blue" in refuses.out
    assert "\n FAIL 5 access " in denied.out
    assert "\n FAIL 4 exists " in absent.out
    assert "\n FAIL 3 subscribed " in unasked.out
    assert "no open stream" in gone.out
    told = {row["name"]: row["error"] for row in wire}
    for said, name in ((denied, names[1]), (absent, names[2])):
        assert f"\ntold: {told[name].partition(': ')[2]}\n" in said.out
    assert xdsctl("explain", "explain-1", "cluster", "explained", "--at", "999999").status == NOT_THERE
    assert xdsctl("explain", "nobody", "cluster", "explained").status == NOT_THERE


def test_bootstrap__grpc__is_json_and_names_the_switch(xdsctl: Xdsctl) -> None:
    said = xdsctl("bootstrap", "grpc", "--client", "me")

    assert said.data["node"]["id"] == "me"
    assert said.data["xds_servers"][0]["server_features"] == ["xds_v3", "resource_timer_is_transient_error"]
    assert "GRPC_EXPERIMENTAL_XDS_DATA_ERROR_HANDLING=true" in said.err
    assert "CALL_CREDS" not in said.err  # no token goes over a connection without TLS


def test_bootstrap__paths_that_the_file_would_not_name__are_refused_in_words(xdsctl: Xdsctl) -> None:
    said = xdsctl("bootstrap", "envoy", "--client", "me", "--cert", "a.pem", "--key", "a.key", "--ca", "ca.pem")

    assert said.status == NO
    assert [name in said.err for name in ("certificate_file", "private_key_file", "ca_certificate_file")] == [True] * 3
    assert "without TLS" in said.err


def test_bootstrap__features_and_services_that_are_asked_for__stand_in_grpcs_file_and_are_refused_for_envoy(
    xdsctl: Xdsctl,
) -> None:
    features = ("--server-feature", "fail_on_data_errors", "--server-feature", "trusted_xds_server")
    services = ("--allowed-grpc-service", "dns:///a:1", "--allowed-grpc-service", "ipv4:10.0.0.1:1,10.0.0.2:1")

    said = xdsctl("bootstrap", "grpc", "--client", "me", *features, *services)
    envoy = xdsctl("bootstrap", "envoy", "--client", "me", *features)
    strange = xdsctl("bootstrap", "grpc", "--client", "me", "--server-feature", "fly")
    told = " ".join(xdsctl("bootstrap", "--help").out.split())

    (server,) = said.data["xds_servers"]
    assert server["server_features"][2:] == ["fail_on_data_errors", "trusted_xds_server"]
    assert list(said.data["allowed_grpc_services"]) == ["dns:///a:1", "ipv4:10.0.0.1:1,10.0.0.2:1"]
    assert (envoy.status, strange.status) == (NO, USAGE)
    assert "'server_features' is not a parameter here" in envoy.err
    assert "fail_on_data_errors" in strange.err
    assert "only for a control plane that cannot be depended on to alert people (gRFC A88)" in told


def test_doctor__all_well_bad_token_no_server__0_1_3(xdsctl: Xdsctl) -> None:
    (port,) = free_ports(1)

    well = xdsctl("doctor")
    stranger = xdsctl("doctor", "--token", "nonsense")
    nobody = xdsctl("doctor", "--server", f"http://127.0.0.1:{port}")

    assert (well.status, stranger.status, nobody.status) == (DONE, NO, NO_ANSWER)
    assert "FAIL  token" in stranger.out


def test_doctor__token_and_ads__says_what_it_may_do_and_whether_bootstraps_lead_anywhere(
    xdsctl: Xdsctl, parley: Parley
) -> None:
    made = parley.call("POST", "/tokens", {"name": "sees", "scopes": [{"role": "viewer", "environment": "default"}]})

    found = {row["check"]: row for row in xdsctl("doctor", "-o", "json").data}
    viewer = xdsctl("doctor", "--token", made.body["token"], "-o", "json")
    lost = {row["check"]: row for row in xdsctl("doctor", "-e", "nowhere", "-o", "json").data}

    assert found["token"]["found"] == "accepted; it may apply in 'default'"
    assert found["ads"]["found"] == f"127.0.0.1:{parley.ads_port} takes connections"
    of_viewer = {row["check"]: row for row in viewer.data}
    assert (viewer.status, of_viewer["token"]["state"]) == (DONE, "ok")
    assert of_viewer["token"]["found"] == "accepted; it may look, and apply nothing, in 'default'"
    assert (lost["environment"]["state"], lost["ads"]["state"]) == ("FAIL", "warn")


def test_doctor__ads_that_is_away__is_a_warning_that_names_its_address(xdsctl: Xdsctl, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with running_up(tmp_path / "home", {"PARLEY_ADS_PUBLIC_ADDRESS": f"127.0.0.1:{port}"}) as other:
        said = xdsctl_for(other, tmp_path)("doctor", "-o", "json")

    row = next(row for row in said.data if row["check"] == "ads")
    assert (said.status, row["state"]) == (DONE, "warn")
    assert f"127.0.0.1:{port} cannot be reached from here" in row["found"]
    assert "PARLEY_ADS_PUBLIC_ADDRESS" in row["fix"]


def test_context__set_use_login_remove__are_kept_in_a_private_file(
    xdsctl: Xdsctl, parley: Parley, tmp_path: Path
) -> None:
    url = f"http://127.0.0.1:{parley.web_port}"
    bare = {"XDSCTL_SERVER": "", "XDSCTL_TOKEN": ""}

    assert xdsctl("get", **bare).status == USAGE
    assert xdsctl("context", "set", "here", "--url", url, **bare).status == DONE
    assert xdsctl("login", stdin=f"{parley.token}\n", **bare).status == DONE
    assert xdsctl("get", **bare).status == DONE
    assert xdsctl("login", stdin="wrong\n", **bare).status == NOT_ACCEPTED
    assert (tmp_path / "contexts.json").stat().st_mode & 0o777 == 0o600
    assert parley.token not in xdsctl("context", "list", "-o", "json").out
    assert xdsctl("context", "use", "elsewhere").status == USAGE
    assert xdsctl("context", "remove", "here").status == DONE


@pytest.mark.parametrize(
    "arguments",
    [("nonsense",), ("get", "--nonsense"), ("apply",), ("apply", "-f", "nowhere.yaml"), ("rollout", "undo")],
)
def test_wrong_usage__2(xdsctl: Xdsctl, arguments: tuple[str, ...]) -> None:
    assert xdsctl(*arguments).status == USAGE


def test_refusal__token_that_may_not__8_and_the_role_it_needs(xdsctl: Xdsctl, parley: Parley) -> None:
    made = parley.call("POST", "/tokens", {"name": "reader", "scopes": [{"role": "viewer", "environment": "default"}]})

    said = xdsctl("apply", "-f", "-", "--token", made.body["token"], stdin=yaml.safe_dump(cluster("no")))

    assert said.status == NOT_ACCEPTED
    assert "editor" in said.err


def test_output__quiet_and_no_color__only_data(xdsctl: Xdsctl, empty: str) -> None:
    said = xdsctl("incidents", "list", "--quiet", "--no-color", "-e", empty)

    assert (said.out, said.err) == ("", "")


def test_access__cases_as_expected_and_not__0_and_1(xdsctl: Xdsctl, parley: Parley, tmp_path: Path) -> None:
    rule = {"pattern": "secret-*", "effect": "deny", "types": ["listener"], "message": "ask the payments team"}
    assert parley.call("POST", "/environments/default/rules", rule).status == 201
    denied = {"node_id": "me", "type": "listener", "name": "secret-pay", "expect": "deny"}
    file = tmp_path / "cases.yaml"

    file.write_text(yaml.safe_dump({"cases": [denied]}))
    kept = xdsctl("access", "test", "-f", str(file))
    file.write_text(yaml.safe_dump({"cases": [denied, {**denied, "expect": "allow"}]}))
    broken = xdsctl("access", "test", "-f", str(file))

    assert (kept.status, kept.err) == (DONE, "1 case is as expected.\n")
    assert (broken.status, broken.err) == (NO, "1 of 2 cases are not as expected.\n")
    rules = {each["pattern"]: each["message"] for each in xdsctl("access", "rules", "-o", "json").data}
    assert rules["secret-*"] == "ask the payments team"
    file.write_text("cases: []")
    assert xdsctl("access", "test", "-f", str(file)).status == USAGE


def test_snapshot_and_undo__back_to_an_epoch__held_until_released(xdsctl: Xdsctl, parley: Parley) -> None:
    first = parley.apply_and_publish(cluster("undone"))["epoch"]
    parley.apply_and_publish(cluster("undone", connect_timeout="9s"))

    exported = xdsctl("snapshot", "export", str(first), "-o", "yaml")
    undone = xdsctl("rollout", "undo", "--to", str(first), "--reason", "too slow", "-o", "json")

    assert "undone" in exported.out
    assert (undone.status, undone.data["edits"][0]["name"]) == (DONE, "undone")
    refused = applied(xdsctl, cluster("other"))
    assert (refused.status, "too slow" in refused.err) == (CONFLICT, True)
    parley.call("PATCH", "/environments/default", {"hold": None})
    assert xdsctl("rollout", "undo", "--to", "999999", "--reason", "x").status == NOT_THERE


def test_undo__of_a_rule_that_takes_everything__once_more_and_too_late(xdsctl: Xdsctl, parley: Parley) -> None:
    rules = "/environments/default/rules"
    # Other tests have clients here, and rules.
    before = parley.call("GET", rules).body["results"]
    change = parley.call("POST", f"{rules}?accept_loss=100", {"pattern": "*", "effect": "deny"}).body["change"]

    undone = xdsctl("undo", change, "--reason", "it emptied the fleet")
    again = xdsctl("undo", change, "--reason", "it emptied the fleet", "-o", "json")

    assert (undone.status, undone.err) == (DONE, "Taken back.\n")
    assert undone.out == f"change {again.data['id']}\n"
    assert (again.status, again.data["changed"], again.data["undoes"]) == (DONE, False, change)
    assert "had taken it back before" in again.err
    assert parley.call("GET", rules).body["results"] == before
    parley.apply(cluster("over"))
    overtaken = parley.apply(cluster("over", connect_timeout="8s"))
    later = parley.apply(cluster("over", connect_timeout="9s"))
    refused = xdsctl("undo", overtaken, "--reason", "late")
    assert (refused.status, f"in change {later[:8]}" in refused.err) == (CONFLICT, True)
