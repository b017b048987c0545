"""People: how often they may try to sign in, what they may do, what browsers are told, and what is kept of it."""

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client
from pytest_django.fixtures import Settings

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.principal import SYSTEM, Role, Scope
from controlplane.accounts.selectors import user_principal
from controlplane.catalog.services import change_apply, environment_create, environment_default_ensure
from controlplane.catalog.values import EnvironmentPolicy, Put
from controlplane.http.security_headers import CONTENT_SECURITY_POLICY
from controlplane.journal.models import AuditEvent
from tests.api.conftest import limited
from tests.support.manifests import parsed, tls_secret

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
USERS: Any = get_user_model()


@pytest.fixture(autouse=True)
def environments(settings: Settings) -> None:
    # Slow hashes are Django's to test; here they would only make a minute pass.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    environment_default_ensure()
    environment_create(key="prod", policy=EnvironmentPolicy(), actor=SYSTEM)


@pytest.fixture
def eve() -> Any:
    return USERS.objects.create_user("eve", password=PASSWORD)


@pytest.fixture
def admin() -> Client:
    USERS.objects.create_superuser("admin", password=PASSWORD)
    client = Client()
    assert client.login(username="admin", password=PASSWORD)
    return client


def sign_in(client: Client, username: str, password: str, address: str = "192.0.2.1") -> Any:
    return client.post("/login", {"username": username, "password": password}, REMOTE_ADDR=address)


def test_login__too_many_from_one_address__429_also_with_the_right_password(eve: Any) -> None:
    codes = [sign_in(Client(), "eve", "wrong").status_code for _ in range(5)]
    refused = sign_in(Client(), "eve", PASSWORD)
    elsewhere = sign_in(Client(), "eve", PASSWORD, "192.0.2.2")

    assert codes == [200] * 5
    assert (refused.status_code, refused["Retry-After"], elsewhere.status_code) == (429, "60", 302)
    assert b"Too many attempts" in refused.content
    verbs = list(AuditEvent.objects.filter(verb__startswith="login.").order_by("pk").values_list("verb", flat=True))
    assert verbs == ["login.failed"] * 5 + ["login.throttled", "login.succeeded"]


def test_login__one_name_from_many_addresses__429_in_the_end(eve: Any, settings: Settings) -> None:
    limited(settings, logins_per_min=1, logins_per_name_per_min=10)  # ten of one network: a newcomer would get in

    codes = {sign_in(Client(), "EVE", "wrong", f"192.0.2.{number}").status_code for number in range(10)}

    assert codes == {200}
    assert sign_in(Client(), "eve", PASSWORD, "192.0.2.77").status_code == 429


def test_login__password_typed_as_a_name__is_not_kept(eve: Any) -> None:
    sign_in(Client(), "hunter2hunter2", "x")

    event = AuditEvent.objects.get(verb="login.failed")
    assert "hunter2" not in str([event.actor, event.subject, event.detail])
    assert event.request_id


def test_login__succeeded__new_session_key_and_no_way_off_this_site(eve: Any) -> None:
    client = Client()
    client.get("/login")
    session = client.session
    session["x"] = 1
    session.save()
    before = session.session_key

    answer = client.post("/login", {"username": "eve", "password": PASSWORD, "next": "https://evil.example/"})

    assert answer["Location"] == "/"
    assert client.session.session_key != before
    cookie = client.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


@pytest.mark.parametrize("path", ["/login", "/", "/x", "/admin/", "/healthz", "/api/v1/environments", "/nowhere"])
def test_answer__any__carries_the_headers(path: str) -> None:
    answer = Client().get(path)

    assert answer["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


def test_pages__all_that_link_to_each_other__need_nothing_the_policy_forbids(admin: Client) -> None:
    waiting, seen = ["/", "/login", "/x?e=default&t=cluster&n=pay"], set[str]()
    while waiting:
        path = waiting.pop()
        seen.add(path)
        page = admin.get(path)
        text = page.getvalue().decode(errors="replace")  # a file is a stream
        if not page.get("Content-Type", "").startswith("text/html") or path.startswith("/api/"):
            continue
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", text), path
        assert not re.search(r"<[^>]+\s(style|on[a-z]+)=", text), path
        assert not re.search(r"(src|href|action)=\"(https?:)?//", text), path
        links = {link.replace("&amp;", "&").partition("#")[0] for link in re.findall(r'<a[^>]+href="(/[^"]*)"', text)}
        waiting += [link for link in links - seen - set(waiting) if "logout" not in link]
    assert len(seen) > 10


def test_role__of_a_user_and_of_their_group__hold_where_they_were_granted(eve: Any) -> None:
    group = Group.objects.create(name="operators")
    eve.groups.add(group)
    RoleGrant.objects.create(user=eve, role="editor", environment="prod")
    RoleGrant.objects.create(group=group, role="viewer")
    RoleGrant.objects.create(group=Group.objects.create(name="others"), role="admin")

    principal = user_principal(USERS.objects.get(pk=eve.pk))

    assert principal is not None
    assert set(principal.scopes) == {Scope(Role.EDITOR, "prod"), Scope(Role.VIEWER, None)}
    client = Client()
    client.force_login(eve)
    assert len(client.get("/api/v1/environments").json()["results"]) == 2
    assert client.patch("/api/v1/environments/prod", {"hold": "x"}, content_type="application/json").status_code == 403


def test_role__revoked__ends_at_once(eve: Any) -> None:
    grant = RoleGrant.objects.create(user=eve, role="viewer", environment="prod")
    client = Client()
    client.force_login(eve)
    assert client.get("/api/v1/environments/prod").status_code == 200

    grant.delete()

    assert client.get("/api/v1/environments/prod").status_code == 404


@pytest.mark.parametrize("path", ["/admin/", "/admin/login/", "/admin/auth/user/"])
def test_admin_pages_of_django__are_gone__our_own_404(path: str, admin: Client) -> None:
    answer = admin.get(path)

    assert answer.status_code == 404
    assert "Parley" in answer.content.decode()
    assert "Django" not in answer.content.decode()


def test_staff__of_djangos_kind__may_nothing_more(eve: Any) -> None:
    USERS.objects.filter(pk=eve.pk).update(is_staff=True)
    client = Client()
    client.force_login(eve)

    assert client.get("/users").status_code == 403
    assert client.get("/e/default/resources").status_code == 404


def test_secret__read_over_the_api__is_kept_with_who_and_never_the_value(admin: Client) -> None:
    change_apply(environment_key="prod", edits=[Put(parsed(tls_secret("key", "hunter2hunter2")))], actor=SYSTEM)
    base = "/api/v1/environments/prod/resources"

    one = admin.get(f"{base}/secret/key")
    many = admin.get(f"{base}?manifests=true")
    admin.get(base)

    assert b"hunter2" not in one.content + many.content
    events = AuditEvent.objects.filter(verb="secret.read")
    assert [(event.actor, event.environment, event.detail["names"]) for event in events] == [
        ("admin", "prod", ["key"]),
        ("admin", "prod", ["key"]),
    ]
    assert "hunter2" not in str(list(AuditEvent.objects.values()))
