"""Several versions of Envoy and several sets at once: a write says which connected Envoys do not know a part of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from controlplane.accounts.principal import ADMIN_SCOPES
from controlplane.catalog.reading import parsed_all, puts_of
from controlplane.catalog.selectors import resource_get
from controlplane.catalog.services import change_apply, change_plan, environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy
from controlplane.schemas import following
from controlplane.schemas.following import schema_take
from controlplane.schemas.services import set_add
from tests.services.schemas.connected import connect
from tests.support.principals import somebody
from tests.unit.schema.test_pool import file
from tests.unit.schema.test_sets import of_the_api
from xdscore.findings import Finding
from xdscore.resource_types import ROUTE
from xdscore.schema import Manifest
from xdscore.schema.sets import schema_with

pytestmark = pytest.mark.django_db(transaction=True)

DANA = somebody("dana", ADMIN_SCOPES)
TYPE = "type.googleapis.com/"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    environment_default_ensure()
    environment_create(key="other", policy=EnvironmentPolicy(), actor=DANA)
    yield
    schema_take(schema_with([]), following.NOTHING)


def route(match: dict[str, Any], **more: Any) -> Manifest:
    one: dict[str, Any] = {"match": {"prefix": "/", **match}, "route": {"cluster": "c"}, **more}
    host: dict[str, Any] = {"name": "v", "domains": ["*"], "routes": [one]}
    return Manifest({"@type": TYPE + ROUTE.message, "name": "r", "virtual_hosts": [host]})


COOKIES = {"cookies": [{"name": "c", "string_match": {"exact": "x"}}]}
PER_ROUTE = {"typed_per_filter_config": {"bw": {"@type": TYPE + "envoy.extensions.filters.http.a2a.v3.A2a"}}}


def told(manifest: Manifest) -> list[Finding]:
    read = parsed_all([manifest], environment_key="default")
    planned = change_plan(environment_key="default", edits=puts_of(read), asker=DANA)
    made = change_apply(environment_key="default", edits=puts_of(read), actor=DANA, message="")
    assert made.findings == planned.findings
    return [each for each in made.findings if each.code in ("XDS3070", "XDS3071")]


def test_write__of_a_field_that_older_envoys_have_not__says_how_many_of_which_version() -> None:
    connect("default", *["1.36.2"] * 3, "1.39.1", "1.40.0", "1.33.0", "dev")
    connect("other", "1.37.0")
    connect("default", "1.36.0", closed=True)

    found = told(route(COOKIES))

    assert [(each.severity.value, each.pointer, each.resource_name) for each in found] == [
        ("warning", "/virtual_hosts/0/routes/0/match/cookies", "r")
    ]
    assert found[0].detail == (
        "The field 'cookies' of envoy.config.route.v3.RouteMatch is not known to 3 connected Envoys of 1.36."
    )
    assert resource_get(environment_key="default", kind=ROUTE, name="r").findings == ()
    assert told(route({})) == []


def test_write__of_an_extension_that_older_envoys_have_not__says_that_they_refuse_it() -> None:
    connect("default", "1.36.4")

    (found,) = told(route({}, **PER_ROUTE))

    assert (found.code, found.pointer) == ("XDS3071", "/virtual_hosts/0/routes/0/typed_per_filter_config/bw")
    assert "is not known to 1 connected Envoy of 1.36." in found.detail


def test_write__of_a_newer_envoys_field__is_told_to_those_of_today_by_two_sets_that_were_added() -> None:
    newer = of_the_api("envoy/config/route/v3/route_components.proto")
    match = next(each for each in newer.message_type if each.name == "RouteMatch")
    optional, text = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.TYPE_STRING
    match.field.add(name="of_tomorrow", number=999, type=text, label=optional)
    set_add(name="own", files=[file("acme/filter.proto", message="Filter", text=1)], actor=DANA)
    set_add(name="envoy-1.41.0", files=[newer], actor=DANA)
    connect("default", "1.36.4", "1.40.1", "1.41.0")
    own = {"typed_per_filter_config": {"own": {"@type": TYPE + "acme.Filter", "text": "x"}}}

    found = told(route({"of_tomorrow": "x"}, **own))

    assert [each.detail.partition(" is not known to ")[2] for each in found] == [
        "1 connected Envoy of 1.40.",
        "1 connected Envoy of 1.36.",
    ]
    assert {each.pointer for each in found} == {"/virtual_hosts/0/routes/0/match/of_tomorrow"}
