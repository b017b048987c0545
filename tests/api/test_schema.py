"""The schema describes every path, and a page shows it offline."""

import re

import jsonschema
import yaml
from django.test import Client
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

from controlplane.api import urls
from controlplane.api.examples import examples
from controlplane.api.views.schema import schema
from tests.api.conftest import Caller, assert_problem
from tests.support.stack import ROOT


def test_schema__read__is_openapi_3_1_in_both_forms(api: Caller) -> None:
    as_json = api.get("schema/")
    as_yaml = api.get("schema/", Accept="application/yaml")

    assert as_json.json["openapi"].startswith("3.1")
    assert yaml.safe_load(as_yaml.content) == as_json.json


def test_schema__every_verb_of_every_path__is_described_with_its_problems() -> None:
    described = {(path, verb.upper()) for path, verbs in schema()["paths"].items() for verb in verbs}
    wanted = {
        ("/api/v1/" + re.sub(r"<\w+:(\w+)>", r"{\1}", str(pattern.pattern)), verb)
        for pattern in urls.urlpatterns
        for verb in getattr(pattern.callback, "cls").needs  # noqa: B009
        if not str(pattern.pattern).startswith("schema/")
    }

    assert described == wanted
    for operations in schema()["paths"].values():
        for operation in operations.values():
            problems = {status for status, answer in operation["responses"].items() if int(status) >= 400}
            assert {"400", "500"} <= problems
            assert operation["summary"]


def test_schema__in_the_repository__is_the_one_that_is_served() -> None:
    committed = (ROOT / "docs" / "reference" / "openapi.yaml").read_bytes()

    made = OpenApiYamlRenderer().render(schema(), renderer_context={})  # type: ignore[no-untyped-call]  # untyped
    assert committed == made, "run `make openapi` and look at the difference"
    validate_schema(schema())  # type: ignore[no-untyped-call]  # untyped


def test_schema__every_body__has_an_example_of_its_shape() -> None:
    components = schema()["components"]

    named = set()
    for operations in schema()["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                named.add(operation["operationId"])
                shape = {**content["schema"], "components": components}
                jsonschema.Draft202012Validator(shape).validate(content["example"])
    assert named == examples().keys()


def test_examples__sent_in_their_order__are_all_taken(api: Caller) -> None:
    here = "environments/default"
    sent = {
        "environment_create": api.post("environments", examples()["environment_create"]),
        "environment_update": api.patch(here, examples()["environment_update"]),
        "validate": api.post("validate", examples()["validate"]),
        "apply": api.post(f"{here}/apply", examples()["apply"]),
        "resource_put": api.put(f"{here}/resources/cluster/pay", examples()["resource_put"]),
        "client_group_create": api.post(f"{here}/client-groups", examples()["client_group_create"]),
        "client_group_replace": api.put(f"{here}/client-groups/payments", examples()["client_group_replace"]),
        "client_group_update": api.patch(f"{here}/client-groups/payments", examples()["client_group_update"]),
        "rule_create": api.post(f"{here}/rules", examples()["rule_create"]),
        "access_test": api.post(f"{here}/access/test", examples()["access_test"]),
        "request_explain": api.post(f"{here}/requests/explain", examples()["request_explain"]),
        "access_case_create": api.post(f"{here}/access/cases", examples()["access_case_create"]),
        **{
            f"route_case_{act}": api.post(f"{here}/requests/cases/{act}", examples()[f"route_case_{act}"])
            for act in ("run", "import")
        },
        "channel_create": api.post("channels", examples()["channel_create"]),
        "comment_create": api.post("comments", examples()["comment_create"]),
        "ticket_link_create": api.post("ticket-links", examples()["ticket_link_create"]),
        "token_create": api.post("tokens", examples()["token_create"]),
        "client_token_create": api.post("client-tokens", examples()["client_token_create"]),
    }
    bulk = examples()["resource_bulk"]
    at = api.get(f"{here}/resources/cluster/pay?status=true").json["revision"]
    sent["resource_patch"] = api.patch(f"{here}/resources/cluster/pay", examples()["resource_patch"])
    sent["resource_bulk"] = api.post(
        f"{here}/resources/bulk", {**bulk, "resources": [{**each, "revision": at} for each in bulk["resources"]]}
    )
    sent["quarantines"] = api.post(f"{here}/quarantines", examples()["quarantines"])
    sent["view_create"] = api.post("views", examples()["view_create"])
    sent["view_update"] = api.patch(f"views/{sent['view_create'].json['id']}", examples()["view_update"])
    comment = f"comments/{sent['comment_create'].json['id']}"
    sent["comment_update"] = api.patch(comment, examples()["comment_update"])
    sent["change_set_create"] = api.post(f"{here}/change-sets", examples()["change_set_create"])
    change_set = f"change-sets/{sent['change_set_create'].json['id']}"
    sent["change_set_edit"] = api.patch(change_set, examples()["change_set_edit"])
    for act in ("comment", "submit", "cancel", "schedule", "publish"):
        sent[f"change_set_{act}"] = api.post(f"{change_set}/{act}", examples()[f"change_set_{act}"])
    [case] = api.get(f"{here}/requests/cases").json["results"]
    kept = f"{here}/requests/cases/{case['id']}"
    sent["route_case_delete"] = api.delete(kept)
    sent["route_case_create"] = api.post(f"{here}/requests/cases", examples()["route_case_create"])
    kept = f"{here}/requests/cases/{sent['route_case_create'].json['id']}"
    sent["route_case_update"] = api.patch(kept, examples()["route_case_update"])
    sent["route_case_apply"] = api.post(f"{here}/requests/cases/apply", examples()["route_case_apply"])
    channel = f"channels/{sent['channel_create'].json['id']}"
    sent["channel_update"] = api.patch(channel, examples()["channel_update"])
    sent["channel_pause"] = api.post(f"{channel}/pause", examples()["channel_pause"])
    rule = f"{here}/rules/{sent['rule_create'].json['id']}"
    sent["rule_replace"] = api.put(rule, examples()["rule_replace"])
    case = f"{here}/access/cases/{sent['access_case_create'].json['id']}"
    sent["access_case_delete"] = api.delete(case)  # which the next one would break
    sent["rule_update"] = api.patch(rule, examples()["rule_update"])
    sent["change_undo"] = api.post(f"changes/{sent['rule_update'].json['change']}/undo", examples()["change_undo"])

    assert {name: answer.content for name, answer in sent.items() if answer.status >= 300} == {}
    assert sent["access_test"].json["results"][0]["ok"]
    # These need a fleet: test_facts.py, test_history.py and test_words.py send bodies of the same shapes.
    assert examples().keys() - sent.keys() == {
        "environment_rollback",
        "incident_update",
        "incident_quarantine",
        "incident_release",
        "incident_assign",
        "incident_mute",
        "client_bulk",
        "client_patch",
        "client_report",
        "rehearse",  # test_rehearsals.py
        # These need somebody else: test_change_sets.py.
        "change_set_approve",
        "change_set_reject",
        # And these a rollout: test_rollouts.py.
        *(f"rollout_{act}" for act in ("advance", "pause", "resume", "approve", "reject", "abort")),
    }


def test_schema__every_reference__leads_somewhere() -> None:
    text = str(schema())

    names = set(re.findall(r"#/components/schemas/(\w+)", text))
    assert names <= schema()["components"]["schemas"].keys()


def test_page__for_somebody_known__needs_nothing_from_elsewhere(api: Caller) -> None:
    page = api.get("schema/ui/")

    text = page.content.decode()
    assert page.headers["Content-Type"].startswith("text/html")
    assert "drf_spectacular_sidecar/swagger-ui-dist" in text
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", text)
    assert not re.search(r"<script>[^<]", text)
    script = re.search(r'src="([^"]*swagger-ui-bundle[^"]*)"', text)
    assert script is not None
    assert Client().get(script[1]).status_code == 200


def test_page__for_nobody__401(nobody: Caller) -> None:
    assert_problem(nobody.get("schema/ui/"), 401)
