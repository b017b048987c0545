"""The schema describes every path, and a page shows it offline."""

import re

import yaml
from django.test import Client

from controlplane.api import urls
from controlplane.api.views.schema import schema
from tests.api.conftest import Caller, assert_problem


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
