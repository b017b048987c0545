"""Who asks is a row and never a name: keys, rates, audit and rights belong to it, and end with it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import transaction

from controlplane.accounts.models import ApiToken, RoleGrant
from controlplane.accounts.people import person_enable
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.accounts.selectors import token_principal
from controlplane.accounts.services import admin_token_ensure, api_token_create
from controlplane.catalog.models import Change
from controlplane.database.append_only import maintenance
from controlplane.journal.models import AuditEvent
from tests.api.conftest import Answer, Caller, assert_problem, caller, signed_in
from tests.support.manifests import cluster

pytestmark = pytest.mark.django_db
USERS: Any = get_user_model()
APPLY = "environments/default/apply"
Person = Callable[..., tuple[Any, Caller]]


def scope(role: str, environment: str | None) -> dict[str, object]:
    return {"role": role, "environment": environment}


def later(hours: int) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).isoformat()


def end_of(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer.json["expires_at"])


@pytest.fixture
def person(environments: None) -> Person:
    """Somebody with these roles in `prod`, signed in."""

    def make(*roles: str, name: str = "paula", environment: str = "prod") -> tuple[Any, Caller]:
        user = USERS.objects.create_user(name)
        for role in roles:
            RoleGrant.objects.create(user=user, role=role, environment=environment)
        return user, signed_in(user)

    return make


def made_by(asker: Caller, *, role: str = "admin", environment: str = "prod", **more: object) -> Answer:
    body = {"name": "t", "scopes": [scope(role, environment)], **more}
    return asker.post("tokens", body)


# Keys of repeated requests


def test_key__of_a_namesake_in_another_environment__is_another_key_and_tells_nothing(environments: None) -> None:
    ours, theirs = (
        Caller(api_token_create(name="deploy", scopes=(Scope(Role.ADMIN, environment),), actor=SYSTEM)[1])
        for environment in ("prod", "default")
    )
    body = {"name": "new", "scopes": [scope("admin", "default")]}

    first = theirs.post("tokens", body, Idempotency_Key="build-7")
    asked = ours.post("tokens", body, Idempotency_Key="build-7")

    assert first.status == 201
    assert_problem(asked, 403)
    assert first.json["token"] not in asked.content.decode()


def test_key__rights_were_taken_away_since__the_old_answer_is_not_told(person: Person) -> None:
    user, paula = person("editor", environment="default")
    change = paula.post(APPLY, {"resources": [cluster("pay")]}).json["id"]
    undo = (f"changes/{change}/undo", {"reason": "r"})
    assert paula.post(*undo, Idempotency_Key="k").status == 202

    RoleGrant.objects.filter(user=user).update(role="viewer")
    lowered = paula.post(*undo, Idempotency_Key="k")
    RoleGrant.objects.filter(user=user).delete()
    gone = paula.post(*undo, Idempotency_Key="k")

    assert_problem(lowered, 403)
    assert_problem(gone, 404)


def test_key__who_administers_no_more__hears_nothing_of_the_token_made_under_it(person: Person) -> None:
    user, paula = person("admin")
    body = {"name": "t", "scopes": [scope("admin", "prod")]}
    token = paula.post("tokens", body, Idempotency_Key="k").json["token"]

    RoleGrant.objects.filter(user=user).update(role="viewer")
    again = paula.post("tokens", body, Idempotency_Key="k")

    assert_problem(again, 403)
    assert token not in again.content.decode()


# Tokens and the people they belong to


def test_token__of_somebody_who_is_turned_off__is_refused_at_once(person: Person) -> None:
    user, paula = person("admin")
    token = Caller(made_by(paula).json["token"])
    assert token.get("environments").status == 200

    USERS.objects.filter(pk=user.pk).update(is_active=False)

    assert_problem(token.get("environments"), 401)


def test_person__turned_off__has_their_tokens_revoked_for_good(person: Person) -> None:
    user, paula = person("admin")
    made = made_by(paula).json
    turn = {"user_id": user.pk, "actor": SYSTEM, "by_superuser": True, "reason": "left"}

    person_enable(enabled=False, **turn)
    person_enable(enabled=True, **turn)

    assert_problem(Caller(made["token"]).get("environments"), 401)
    assert ApiToken.objects.get(pk=made["id"]).revoked_at is not None
    (told,) = AuditEvent.objects.filter(verb="token.revoked")
    assert told.detail["reason"] == "The account of paula was turned off. left"


def test_person__deleted__has_no_token_left(person: Person) -> None:
    user, paula = person("admin")
    token = made_by(paula).json["token"]

    user.delete()

    assert token_principal(token) is None


@pytest.mark.parametrize(
    ("left", "reads", "writes"), [("admin", 200, 202), ("editor", 200, 202), ("viewer", 200, 403), ("", 404, 404)]
)
def test_token__of_somebody_whose_rights_shrank__may_do_no_more_than_they(
    person: Person, left: str, reads: int, writes: int
) -> None:
    user, paula = person("admin", environment="default")
    token = Caller(made_by(paula, environment="default").json["token"])

    if left:
        RoleGrant.objects.filter(user=user).update(role=left)
    else:
        RoleGrant.objects.filter(user=user).delete()

    assert token.get("environments/default").status == reads
    assert token.post(APPLY, {"resources": [cluster("pay")]}).status == writes


def test_token__made_by_a_person__says_whose_it_is_everywhere(person: Person) -> None:
    user, paula = person("admin")

    made = made_by(paula).json

    listed = next(each for each in paula.get("tokens").json["results"] if each["id"] == made["id"])
    assert (listed["owner"], listed["owner_id"], listed["kind"]) == ("paula", f"user:{user.pk}", "personal")
    assert (listed["created_by"], listed["created_by_id"]) == ("paula", f"user:{user.pk}")
    told = AuditEvent.objects.get(verb="token.created", subject=made["prefix"])
    assert (told.actor, told.principal, told.detail["owner"]) == ("paula", f"user:{user.pk}", "paula")


def test_service_token__outlives_whoever_made_it_and_belongs_to_nobody(person: Person) -> None:
    user, paula = person("admin")
    made = made_by(paula, kind="service").json

    person_enable(user_id=user.pk, enabled=False, actor=SYSTEM, by_superuser=True, reason="left")

    assert Caller(made["token"]).get("environments").status == 200
    assert (made["kind"], made["owner"], made["owner_id"]) == ("service", None, None)
    assert made["created_by_id"] == f"user:{user.pk}"


@pytest.mark.parametrize("kind", ["service", "personal"])
def test_token__made_by_who_does_not_administer__403(person: Person, kind: str) -> None:
    _user, olga = person("operator", name="olga")

    assert_problem(made_by(olga, role="viewer", kind=kind), 403)


def test_personal_token__of_who_is_no_person__422(as_role: Callable[[str, str | None], Caller]) -> None:
    answer = made_by(as_role("admin", "prod"), kind="personal")

    assert_problem(answer, 422)
    assert "is no person" in answer.json["detail"]


# Tokens and the tokens they are made with


def test_token__made_with_one_that_ends__ends_with_it_at_the_latest(person: Person) -> None:
    _user, paula = person("admin")
    end = later(2)
    maker = Caller(made_by(paula, expires_at=end).json["token"])

    unsaid = made_by(maker, name="unsaid")
    sooner = made_by(maker, name="sooner", expires_at=later(1))
    beyond = made_by(maker, name="beyond", expires_at=later(3))
    assert paula.patch("environments/prod", {"selectors": [{"identity": "s"}]}).status == 200
    plane = maker.post("client-tokens", {"subject": "s", "environment": "prod"})

    assert end_of(unsaid) == end_of(plane)
    assert end_of(sooner) < end_of(unsaid)
    assert_problem(beyond, 422)
    assert_problem(maker.post("client-tokens", {"subject": "s", "environment": "prod", "expires_at": later(3)}), 422)
    assert not ApiToken.objects.filter(name="beyond").exists()


def test_token__made_with_a_persons__belongs_to_that_person(person: Person) -> None:
    user, paula = person("admin")
    maker = made_by(paula).json

    made = made_by(Caller(maker["token"]), name="second").json

    assert (made["owner_id"], made["created_by_id"]) == (f"user:{user.pk}", f"token:{maker['id']}")
    USERS.objects.filter(pk=user.pk).update(is_active=False)
    assert_problem(Caller(made["token"]).get("environments"), 401)


@pytest.mark.parametrize("kind", ["service", "personal"])
def test_token__revoked__takes_along_what_was_made_with_it(person: Person, kind: str) -> None:
    _user, paula = person("admin")
    first = made_by(paula, name="first", kind=kind).json
    second = made_by(Caller(first["token"]), name="second").json
    third = made_by(Caller(second["token"]), name="third").json

    paula.delete(f"tokens/{first['id']}")

    assert [Caller(each["token"]).get("environments").status for each in (first, second, third)] == [401] * 3
    assert AuditEvent.objects.filter(verb="token.revoked").count() == 3


def test_service_token__made_with_a_persons_token__403(person: Person) -> None:
    _user, paula = person("admin")
    maker = Caller(made_by(paula).json["token"])

    asked = made_by(maker, name="second", kind="service")

    assert_problem(asked, 403)
    assert "belongs to paula" in asked.json["detail"]


def test_token__made_with_the_installations__is_a_service_that_stays(environments: None) -> None:
    installation = admin_token_ensure(known="")

    made = made_by(Caller(installation)).json

    assert (made["kind"], made["expires_at"]) == ("service", None)
    assert made["created_by_id"] == "installation"
    assert admin_token_ensure(known=installation) == installation


# Names


def test_name__taken_by_a_token_of_the_same_owner__409_and_free_once_that_ended(person: Person) -> None:
    _user, paula = person("admin")
    _other, quinn = person("admin", name="quinn")
    first = made_by(paula)

    again = made_by(paula)

    assert_problem(again, 409)
    assert "'t'" in again.json["detail"]
    assert made_by(quinn).status == 201
    assert made_by(paula, kind="service").status == 201
    assert_problem(made_by(quinn, kind="service"), 409)
    paula.delete(f"tokens/{first.json['id']}")
    assert made_by(paula).status == 201


def test_name__of_a_service_of_another_environment__tells_nothing(environments: None) -> None:
    caller(Scope(Role.ADMIN, "default")).post("tokens", {"name": "deploy", "scopes": [scope("viewer", "default")]})

    asked = caller(Scope(Role.ADMIN, "prod")).post("tokens", {"name": "deploy", "scopes": [scope("viewer", "prod")]})

    assert asked.status == 201


# Ids beside names


def test_audit_and_history__carry_the_id_of_who_acted_beside_the_name(api: Caller, person: Person) -> None:
    user, paula = person("editor", environment="default")

    change = paula.post(APPLY, {"resources": [cluster("pay")]}).json

    (event,) = api.get("audit?verb=change.saved").json["results"]
    (revision,) = api.get("environments/default/resources/cluster/pay/revisions").json["results"]
    read = paula.get(f"changes/{change['id']}").json
    assert (event["actor"], event["actor_id"]) == ("paula", f"user:{user.pk}")
    assert (read["author"], read["author_id"]) == ("paula", f"user:{user.pk}")
    assert (revision["author"], revision["author_id"]) == ("paula", f"user:{user.pk}")
    assert [each["id"] for each in api.get(f"audit?actor_id=user:{user.pk}").json["results"]] == [event["id"]]
    with transaction.atomic(), maintenance():
        Change.objects.update(principal="")  # as it was written before ids were kept
    assert paula.get(f"changes/{change['id']}").json["author_id"] is None


# What is one's own


def test_own_token__whose_owner_administers_no_more__is_listed_and_ended_by_them_alone(person: Person) -> None:
    user, paula = person("admin")
    _other, rita = person("viewer", name="rita")
    own, another = made_by(paula), made_by(paula, name="another")
    service = made_by(paula, name="ci", kind="service")
    bearer = Caller(another.json["token"])
    RoleGrant.objects.filter(user=user).delete()

    listed = [each["id"] for each in paula.get("tokens").json["results"]]
    of_bearer = [each["id"] for each in bearer.get("tokens").json["results"]]
    refused = [
        paula.delete(f"tokens/{service.json['id']}").status,
        rita.delete(f"tokens/{own.json['id']}").status,
        bearer.delete(f"tokens/{own.json['id']}").status,  # who stole one token ends no other
    ]
    ended = paula.delete(f"tokens/{own.json['id']}"), bearer.delete(f"tokens/{another.json['id']}")

    assert listed == [another.json["id"], own.json["id"]]
    assert of_bearer == [another.json["id"]]
    assert rita.get("tokens").json["results"] == []
    assert refused == [404, 404, 404]
    assert [each.status for each in ended] == [204, 204]
    assert [token_principal(each.json["token"]) for each in (own, another)] == [None, None]
    assert token_principal(service.json["token"]) is not None
