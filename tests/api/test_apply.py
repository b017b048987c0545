"""Apply: many edits as one change, and dry runs that leave nothing."""

import json
from collections.abc import Callable

import pytest
import yaml
from pytest_django.fixtures import Settings

from controlplane.builder.models import Build, BuildOutcome
from controlplane.catalog.models import Change, Environment, Resource
from controlplane.catalog.services import environment_update
from controlplane.catalog.values import EnvironmentPolicy
from tests.api.conftest import DANA, Answer, Caller, assert_problem, limited
from tests.support.manifests import TYPE, cluster, endpoints, listener, route, tls_secret

APPLY = "environments/default/apply"
Stored = Callable[[], tuple[object, ...]]


def edits(answer: Answer) -> list[tuple[str, str, str]]:
    return [(edit["type"], edit["name"], edit["action"]) for edit in answer.json.get("edits", answer.json.get("diff"))]


def present() -> set[tuple[str, str]]:
    return set(Resource.objects.filter(deleted=False).values_list("type", "name"))


def test_apply__resources_and_deletions__one_change(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("old")]})
    before = Change.objects.count()

    answer = api.post(
        APPLY,
        {
            "resources": [
                cluster("a"),
                endpoints("a", 1),
                route("r", "a"),
                listener("l", "r", 8080),
                tls_secret("s", "v"),
            ],
            "delete": [{"type": "cluster", "name": "old"}, {"type": "cluster", "name": "never-was"}],
            "message": "both",
        },
    )

    assert answer.status == 202
    assert Change.objects.count() == before + 1
    assert set(edits(answer)) == {
        ("cluster", "a", "created"),
        ("endpoint", "a", "created"),
        ("route", "r", "created"),
        ("listener", "l", "created"),
        ("secret", "s", "created"),
        ("cluster", "old", "deleted"),
    }
    assert answer.json["message"] == "both"


def test_apply__twice__the_second_changes_nothing(api: Caller, stored: Stored) -> None:
    body = {"resources": [cluster("a"), tls_secret("s", "v")], "owner": "team", "prune": True}
    api.post(APPLY, body)
    before = stored()

    answer = api.post(APPLY, body)

    assert (answer.status, answer.json) == (200, {"changed": False})
    assert stored() == before


def test_apply__nothing_at_all__changes_nothing(api: Caller) -> None:
    assert api.post(APPLY, {}).json == {"changed": False}
    assert api.post(APPLY, {"resources": [], "delete": []}).json == {"changed": False}


PLAIN_FORMS = {
    "an apply document in YAML": yaml.safe_dump({"resources": [cluster("a"), cluster("b")], "message": "m"}),
    "several YAML documents": f"{yaml.safe_dump(cluster('a'))}---\n{yaml.safe_dump(cluster('b'))}---\n",
    "a YAML list": yaml.safe_dump([cluster("a"), cluster("b")]),
    "a JSON list as YAML": json.dumps([cluster("a"), cluster("b")]),
    "a bootstrap": yaml.safe_dump({"static_resources": {"clusters": [cluster("a"), cluster("b")]}}),
    "a config_dump": json.dumps(
        {
            "configs": [
                {
                    "@type": TYPE + "envoy.admin.v3.ClustersConfigDump",
                    "dynamic_active_clusters": [{"cluster": cluster("a")}, {"cluster": cluster("b")}],
                }
            ]
        }
    ),
    "a delta response": json.dumps(
        {"nonce": "1", "resources": [{"name": name, "version": "7", "resource": cluster(name)} for name in "ab"]}
    ),
    "a folder of different files": json.dumps(
        {
            "resources": [
                {"static_resources": {"clusters": [cluster("a")]}},
                {"version_info": "7", "resources": [cluster("b")]},
            ]
        }
    ),
    "a discovery response": json.dumps({"version_info": "7", "resources": [cluster("a"), cluster("b")]}),
}


@pytest.mark.parametrize("text", PLAIN_FORMS.values(), ids=PLAIN_FORMS.keys())
def test_apply__every_form_of_a_file__makes_the_same_resources(api: Caller, text: str) -> None:
    answer = api.post(f"{APPLY}?message=m", text, media="application/yaml")

    assert edits(answer) == [("cluster", "a", "created"), ("cluster", "b", "created")]
    assert answer.json["message"] == "m"


def test_apply__mistake_in_a_file_of_a_folder__pointer_leads_into_that_file(api: Caller) -> None:
    folder = [cluster("a"), {"static_resources": {"clusters": [{"name": "b", "wrong": 1}]}}]

    answer = api.post(APPLY, {"resources": folder})

    assert_problem(answer, 422, "XDS1013")
    assert answer.json["errors"][0]["pointer"] == "/resources/1/static_resources/clusters/0/wrong"


def test_apply__what_a_list_of_manifests_exports__is_there_already_and_fills_an_empty_environment(api: Caller) -> None:
    everything = [cluster("a", eds=True), endpoints("a", 8080), route("r", "a"), listener("in", "r", 8443)]
    api.post(APPLY, {"resources": everything})
    export = api.get("environments/default/resources?manifests=true", accept="application/yaml").content.decode()

    again = api.post(APPLY, export, media="application/yaml")
    api.patch("environments/prod", {"content": {"loopback": "allow"}})
    elsewhere = api.post("environments/prod/apply", export, media="application/yaml")

    assert again.json == {"changed": False}
    assert len(edits(elsewhere)) == 4
    assert contents(api, "prod") == contents(api, "default")


def contents(api: Caller, environment: str) -> list[tuple[str, str, str]]:
    rows = api.get(f"environments/{environment}/resources").json["results"]
    return [(row["type"], row["name"], row["version"]) for row in rows]


def test_apply__mistake_in_the_second_of_several_documents__pointer_and_line(api: Caller) -> None:
    second = f"# second\nname: b\nwrong: 1\n'@type': {TYPE}envoy.config.cluster.v3.Cluster\n"
    text = f"{yaml.safe_dump(cluster('a'))}---\n{second}"

    answer = api.post(APPLY, text, media="application/yaml")

    assert_problem(answer, 422, "XDS1013")
    error = answer.json["errors"][0]
    assert error["pointer"] == "/1/wrong"
    assert text.splitlines()[error["line"] - 1] == "wrong: 1"


def test_apply__prune__deletes_only_what_the_owner_has_and_does_not_name(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a"), cluster("b")], "owner": "team-a"})
    api.post(APPLY, {"resources": [cluster("c")], "owner": "team-b"})
    api.post(APPLY, {"resources": [cluster("d")]})

    answer = api.post(APPLY, {"resources": [cluster("a")], "owner": "team-a", "prune": True})

    assert edits(answer) == [("cluster", "b", "deleted")]
    assert present() == {("cluster", each) for each in "acd"}


def test_apply__prune_without_owner__422(api: Caller, stored: Stored) -> None:
    before = stored()

    answer = api.post(APPLY, {"resources": [cluster("a")], "prune": True})

    assert_problem(answer, 422)
    assert "owner" in answer.json["detail"]
    assert stored() == before


def test_apply__plain_manifests_with_owner_and_prune_in_the_query__prunes(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a"), cluster("b")], "owner": "team"})

    answer = api.post(f"{APPLY}?owner=team&prune=true", yaml.safe_dump(cluster("a")), media="text/yaml")

    assert edits(answer) == [("cluster", "b", "deleted")]


def test_apply__dry_run__says_what_apply_would_do_and_leaves_nothing(api: Caller, stored: Stored) -> None:
    api.post(APPLY, {"resources": [cluster("a"), cluster("b")], "owner": "team"})
    body = {"resources": [cluster("a", connect_timeout="9s"), cluster("c")], "owner": "team", "prune": True}
    before = stored()

    planned = api.post(f"{APPLY}?dry_run=true", body)

    assert stored() == before
    assert (planned.status, planned.json["changed"], planned.json["dry_run"]) == (200, True, True)
    outcomes = [{key: edit[key] for key in ("type", "name", "action", "revision")} for edit in planned.json["diff"]]
    assert sorted(outcomes, key=str) == sorted(api.post(APPLY, body).json["edits"], key=str)


def test_apply__dry_run__says_which_fields_differ_and_with_text_how_a_review_reads_it(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a"), cluster("b")]})
    body = {"resources": [cluster("a", connect_timeout="9s")], "delete": [{"type": "cluster", "name": "b"}]}

    diff = api.post(f"{APPLY}?dry_run=true&text=true", body).json["diff"]

    by_name = {edit["name"]: edit for edit in diff}
    assert by_name["a"]["fields"] == [{"pointer": "/connect_timeout", "before": "1s", "after": "9s"}]
    assert by_name["a"]["fields_omitted"] == 0
    assert "\n-connect_timeout: 1s\n+connect_timeout: 9s\n" in by_name["a"]["text"]
    assert by_name["b"]["text"].startswith("--- a/cluster/b\n+++ /dev/null\n")
    assert "fields" not in by_name["b"]


def test_apply__dry_run_of_a_bootstrap__says_what_is_left_out_and_where(api: Caller) -> None:
    text = "admin: {}\nnode: {id: a}\nstatic_resources:\n  clusters:\n  - {name: pay, connect_timeout: 1s}\n"

    answer = api.post(f"{APPLY}?dry_run=true", text, media="application/yaml")

    left = [(each["code"], each["pointer"], each["line"]) for each in answer.json["findings"]]
    assert left == [("XDS1062", "/admin", 1), ("XDS1062", "/node", 2)]
    assert edits(answer) == [("cluster", "pay", "created")]


def test_apply__dry_run_of_a_secret__shows_that_it_differs_and_nothing_of_it(api: Caller) -> None:
    api.post(APPLY, {"resources": [tls_secret("s", "first-canary")]})

    answer = api.post(f"{APPLY}?dry_run=true&text=true", {"resources": [tls_secret("s", "second-canary")]})

    assert [edit["action"] for edit in answer.json["diff"]] == ["updated"]
    assert answer.json["diff"][0]["fields"] != []
    assert "canary" not in json.dumps(answer.json)


def test_apply__dry_run_of_what_is_there__says_that_nothing_changes(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a")]})

    answer = api.post(f"{APPLY}?dry_run=true", {"resources": [cluster("a")]})

    assert (answer.json["changed"], answer.json["diff"]) == (False, [])


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_apply__held_environment__409_with_the_reason(api: Caller, query: str) -> None:
    environment_update(key="default", policy=EnvironmentPolicy(hold="we look into it"), actor=DANA)

    answer = api.post(APPLY + query, {"resources": [cluster("a")]})

    assert_problem(answer, 409)
    assert "we look into it" in answer.json["detail"]


def built(generation: int, epoch: int, outcome: BuildOutcome = BuildOutcome.PUBLISHED) -> None:
    environment = Environment.objects.get(key="default")
    Environment.objects.filter(pk=environment.pk).update(built_generation=generation, epoch=epoch)
    Build.objects.create(
        environment=environment, from_generation=0, to_generation=generation, epoch=epoch, outcome=outcome
    )


@pytest.mark.parametrize("query", ["", "?dry_run=true"])
def test_apply__base_epoch_that_moved__409_with_what_moved(api: Caller, query: str) -> None:
    first = api.post(APPLY, {"resources": [cluster("a"), cluster("b")]})
    built(first.json["generation"], epoch=1)
    api.put("environments/default/resources/cluster/b", cluster("b", connect_timeout="3s"))

    answer = api.post(APPLY + query, {"resources": [cluster("a", connect_timeout="2s")], "base_epoch": 1})

    assert_problem(answer, 409)
    assert [error["resource"]["name"] for error in answer.json["errors"]] == ["b"]


def test_apply__base_epoch_that_stands__is_applied(api: Caller) -> None:
    first = api.post(APPLY, {"resources": [cluster("a")]})
    built(first.json["generation"], epoch=1)
    api.patch("environments/default", {"quarantine": "off"})  # a policy is no resource

    assert api.post(APPLY, {"resources": [cluster("b")], "base_epoch": 1}).status == 202


def test_apply__base_epoch_to_come_or_forgotten__refused(api: Caller) -> None:
    Environment.objects.filter(key="default").update(epoch=7)

    assert_problem(api.post(APPLY, {"resources": [], "base_epoch": 8}), 422)
    assert_problem(api.post(APPLY, {"resources": [], "base_epoch": 6}), 409)


def test_apply__more_resources_than_an_environment_may_hold__422(
    api: Caller, stored: Stored, settings: Settings
) -> None:
    limited(settings, resources_per_environment=2)
    api.post(APPLY, {"resources": [cluster("a"), cluster("b")]})
    before = stored()

    refused = api.post(APPLY, {"resources": [cluster("c")]})

    assert_problem(refused, 422)
    assert stored() == before
    swap = {"resources": [cluster("c")], "delete": [{"type": "cluster", "name": "a"}]}
    assert api.post(APPLY, swap).status == 202


def test_apply__unknown_environment__404(api: Caller) -> None:
    assert_problem(api.post("environments/nowhere/apply", {"resources": []}), 404)
    assert_problem(api.post("environments/No%00where/apply", {"resources": []}), 404)


def test_apply__a_thousand_clusters__within_seconds(api: Caller) -> None:
    answer = api.post(APPLY, {"resources": [cluster(f"c{number}") for number in range(1_000)]})

    assert answer.json["edit_count"] == 1_000
    assert len(present()) == 1_000


STRICT = f"{APPLY}?strict=true"
ELSEWHERE = "xdstp://other.example/envoy.config.cluster.v3.Cluster/c"
HERE = "xdstp://here.example/envoy.config.cluster.v3.Cluster/"


def missing(answer: Answer) -> list[tuple[str, str, str]]:
    """(who refers, where, to what) of a refusal."""
    assert_problem(answer, 422, "XDS2002")
    return [
        (error["resource"]["name"], error["pointer"], error["detail"].split("'")[1]) for error in answer.json["errors"]
    ]


@pytest.mark.parametrize("query", ["", "&dry_run=true"])
def test_apply__strict_and_references_to_nothing__422_with_every_place_and_no_change(
    api: Caller, stored: Stored, query: str
) -> None:
    api.post(APPLY, {"resources": [cluster("there"), cluster("gone"), cluster("going")]})
    api.post(APPLY, {"delete": [{"type": "cluster", "name": "gone"}]})
    before = stored()
    place = "virtual_hosts/0/routes/0/route/cluster"

    answer = api.post(
        STRICT + query,
        {
            "resources": [
                route("r0", "there"),
                route("r1", "comes-along"),
                cluster("comes-along"),
                route("r3", "never-was"),
                route("r4", "gone"),
                route("r5", "going"),
            ],
            "delete": [{"type": "cluster", "name": "going"}],
        },
    )

    assert missing(answer) == [
        ("r3", f"/resources/3/{place}", "never-was"),
        ("r4", f"/resources/4/{place}", "gone"),
        ("r5", f"/resources/5/{place}", "going"),
    ]
    assert stored() == before


def test_apply__strict_and_every_reference_leads_somewhere__is_applied(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("there")]})

    answer = api.post(STRICT, {"resources": [route("r", "there"), listener("l", "r", 8080), cluster("e", eds=True)]})

    assert missing(answer) == [("e", "/resources/2/name", "e")]
    again = api.post(STRICT, {"resources": [route("r", "there"), listener("l", "r", 8080)]})
    assert again.status == 202


def test_apply__strict_in_yaml__line_of_the_reference(api: Caller) -> None:
    text = f"{yaml.safe_dump(cluster('a'))}---\n{yaml.safe_dump(route('r', 'nobody'))}"

    error = api.post(STRICT, text, media="application/yaml").json["errors"][0]

    assert error["pointer"] == "/1/virtual_hosts/0/routes/0/route/cluster"
    assert text.splitlines()[error["line"] - 1].strip() == "cluster: nobody"


def test_apply__strict_again_over_what_is_held__is_still_refused(api: Caller) -> None:
    held = {"resources": [route("r", "nobody")]}
    assert api.post(APPLY, held).status == 202

    assert [target for _, _, target in missing(api.post(STRICT, held))] == ["nobody"]


def test_apply__strict_and_pruned_in_the_same_apply__is_missing(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a")], "owner": "team"})

    answer = api.post(STRICT, {"resources": [route("r", "a")], "owner": "team", "prune": True})

    assert missing(answer) == [("r", "/resources/0/virtual_hosts/0/routes/0/route/cluster", "a")]


def test_apply__strict_and_an_xdstp_name_of_another_authority__is_another_servers(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster(HERE + "a")]})

    assert api.post(STRICT, {"resources": [route("elsewhere", ELSEWHERE)]}).status == 202
    assert [who for who, _, _ in missing(api.post(STRICT, {"resources": [route("here", HERE + "b")]}))] == ["here"]


def test_apply__strict_and_somebody_else_refers_to_what_is_deleted__a_warning_as_ever(api: Caller) -> None:
    api.post(APPLY, {"resources": [cluster("a"), route("r", "a")]})

    body = {"delete": [{"type": "cluster", "name": "a"}]}
    planned = api.post(f"{STRICT}&dry_run=true", body)
    made = api.post(STRICT, body)

    assert [finding["code"] for finding in planned.json["findings"]] == ["XDS3007"]
    assert (made.status, made.json["findings"]) == (202, planned.json["findings"])


def test_apply__secret_that_no_rule_lets_anybody_read__is_stored_and_warned_of_until_one_does(api: Caller) -> None:
    body = {"resources": [tls_secret("key", "first"), cluster("a")]}

    def warned(answer: Answer) -> list[tuple[str, str, str]]:
        found = [each for each in answer.json["findings"] if each["code"] == "XDS3056"]
        return [(each["severity"], each["resource"]["type"], each["resource"]["name"]) for each in found]

    dry, made = api.post(f"{APPLY}?dry_run=true", body), api.post(APPLY, body)
    put = api("PUT", "environments/default/resources/secret/key", tls_secret("key", "second"))
    said = [warned(answer) for answer in (dry, made, put, api.get(f"changes/{made.json['id']}"))]
    rule = {"effect": "allow", "pattern": "key", "types": ["secret"]}
    assert api.post("environments/default/rules", rule).status == 201

    assert said == [[("warning", "secret", "key")]] * 4
    assert warned(api.get(f"changes/{made.json['id']}")) == []
    assert warned(api.post(APPLY, {"resources": [tls_secret("key", "third")]})) == []
    assert warned(api.post(APPLY, {"delete": [{"type": "secret", "name": "key"}]})) == []
