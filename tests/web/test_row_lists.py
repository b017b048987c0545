"""The lists of rules, groups, tokens, people, channels, builds and route cases: as `test_lists` does it for the others,
each filter and order is that of a plain loop, and a file has the same rows and no secret.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client as Browser
from django.utils import timezone

from controlplane.access.models import AccessRule, ClientGroup
from controlplane.access.services import group_create, rule_create
from controlplane.access.values import GroupDraft, RuleDraft
from controlplane.accounts.models import ApiToken, ClientToken, RoleGrant
from controlplane.accounts.principal import SYSTEM, Role
from controlplane.builder.models import Build
from controlplane.catalog.models import Environment
from controlplane.database.aliases import READER
from controlplane.notify.channel_kinds import ChannelKind
from controlplane.notify.channel_rules import NewChannel
from controlplane.notify.models import Channel
from controlplane.notify.services import channel_create
from controlplane.routecases.models import RouteCase
from controlplane.routecases.services import case_create
from tests.services.incidents.fleet import DANA
from tests.services.routecases.test_judging import PAY
from tests.web.conftest import HOSTILE, page
from tests.web.test_lists import file_of, held_up, walk
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", READER])
COUNT: Final = 53  # more than a page
LISTS: Final = (
    *(f"/e/default/{each}" for each in ("access", "access/groups", "builds", "route-cases")),
    *("/tokens", "/tokens?kind=client", "/users", "/users/groups", "/channels"),
)
_HEAD: Final = r'<th scope="row" class="foreign">(?:<a href="[^"]+">)?([^<]+)<'


def moment(number: int) -> Any:
    return timezone.now() - timedelta(hours=number, minutes=30)


def test_tokens__each_filter_and_order__is_that_of_a_plain_loop_and_no_file_has_a_secret(admin: Browser) -> None:
    now, kim = timezone.now(), User.objects.create_user("kim")
    for number in range(COUNT):
        common = {
            "created_at": moment(number),
            "created_by": ("dana", "ola")[number % 2],
            "digest": f"secret-{number:04}",
            "expires_at": (None, now + timedelta(days=7, hours=number), now - timedelta(hours=number), None)[
                number % 4
            ],
            "revoked_at": now if number % 8 == 0 else None,
        }
        ApiToken.objects.create(
            name=f"t{number:02}",
            prefix=f"p{number:02}",
            owner=kim if number % 5 == 0 else None,
            kind="personal" if number % 5 == 0 else "service",
            last_used_on=(now - timedelta(days=number)).date(),
            scopes=[{"role": "editor", "environment": "default"}],
            **common,
        )
        ClientToken.objects.create(subject=f"s{number:02}", environment="default", hint=f"h{number:02}", **common)

    def good(row: Any) -> bool:
        return row.revoked_at is None and (row.expires_at is None or row.expires_at > now)

    def ends(row: Any) -> Any:
        return row.expires_at or now + timedelta(days=10_000)

    filters: dict[str, Callable[[Any], object]] = {
        "text=1": lambda row: "1" in (row.name if isinstance(row, ApiToken) else row.subject),
        "state=good": good,
        "state=ended": lambda row: not good(row),
        "state=ending": lambda row: good(row) and row.expires_at is not None,
        "since=9h": lambda row: row.created_at >= now - timedelta(hours=9),
        "until=9h&state=good": lambda row: row.created_at <= now - timedelta(hours=9) and good(row),
    }
    orders: dict[str, Callable[[Any], Any]] = {"made": lambda row: row.created_at, "ends": ends}
    api = held_up(
        admin,
        "/tokens",
        _HEAD,
        list(ApiToken.objects.all()),
        lambda row: str(row.name),
        filters={
            **filters,
            "by=kim": lambda row: row.owner_id == kim.pk,
            "by=ola": lambda row: row.created_by == "ola",
        },
        orders={**orders, "name": lambda row: row.name, "used": lambda row: row.last_used_on},
        column="name",
    )
    planes = held_up(
        admin,
        "/tokens",
        _HEAD,
        list(ClientToken.objects.all()),
        lambda row: str(row.subject),
        filters={f"kind=client&{each}": fits for each, fits in filters.items()},
        orders={},
        column="name",
    )

    assert [*api, *planes] == []
    assert "secret" not in str(file_of(admin, "/tokens")) + str(file_of(admin, "/tokens?kind=client"))


def test_tokens__file_of_who_administers_little__has_those_alone(person: Any) -> None:
    for key in ("default", "prod"):
        scopes = [{"role": "editor", "environment": key}]
        ApiToken.objects.create(name=f"of-{key}", kind="service", prefix=key, digest=key, scopes=scopes)
        ClientToken.objects.create(subject=f"of-{key}", environment=key, hint=key, digest=key)
    admin_of_prod, viewer = person(Role.ADMIN, "prod"), person(Role.VIEWER)

    for path in ("/tokens", "/tokens?kind=client"):
        assert [row["name"] for row in file_of(admin_of_prod, path)] == ["of-prod"]
    assert viewer.get("/tokens?file=csv").status_code == 403
    for path in ("/users", "/users/groups", "/channels"):
        assert admin_of_prod.get(f"{path}?file=csv").status_code == 403


def test_people_and_groups__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser) -> None:
    now = timezone.now()
    groups = [Group.objects.create(name=f"g{number}") for number in range(3)]
    RoleGrant.objects.create(group=groups[0], environment="", role="operator")
    for number in range(COUNT):
        user = User.objects.create_user(
            f"u{number:02}",
            email=f"u{number:02}@shop-{number % 3}.example",
            is_active=number % 4 > 0,
            last_login=moment(number) if number % 2 else None,
            date_joined=moment(2 * number),
        )
        user.groups.add(*groups[number % 4 : 1])
        if number % 6 == 0:
            RoleGrant.objects.create(user=user, environment="prod", role="editor")
    User.objects.filter(username="admin").update(last_login=moment(100), date_joined=moment(300))

    def roles(row: User) -> set[str]:
        grants = [*row.role_grants.all(), *(each for group in row.groups.all() for each in group.role_grants.all())]
        return {each.role for each in grants}

    people = held_up(
        admin,
        "/users",
        _HEAD,
        list(User.objects.all()),
        lambda row: str(row.username),
        filters={
            "text=shop-2": lambda row: "shop-2" in row.email,
            "text=u1": lambda row: "u1" in row.username,
            "state=disabled": lambda row: not row.is_active,
            "state=superuser": lambda row: row.is_superuser,
            "role=operator": lambda row: "operator" in roles(row),
            "role=editor&state=active": lambda row: "editor" in roles(row) and row.is_active,
            "since=9h": lambda row: row.last_login is not None and row.last_login >= now - timedelta(hours=9),
            "until=9h": lambda row: row.last_login is None or row.last_login <= now - timedelta(hours=9),
        },
        orders={
            "name": lambda row: row.username,
            "joined": lambda row: row.date_joined,
            "seen": lambda row: row.last_login or now - timedelta(days=999),
        },
        column="user",
    )
    of_users = held_up(
        admin,
        "/users/groups",
        _HEAD,
        groups,
        lambda row: str(row.name),
        filters={"text=g1": lambda row: row.name == "g1", "role=operator": lambda row: row.name == "g0"},
        orders={"name": lambda row: row.name, "users": lambda row: row.user_set.count()},
        column="group",
    )

    assert [*people, *of_users] == []


def test_channels__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser) -> None:
    for number in range(7):
        kind = (ChannelKind.MAIL, ChannelKind.DIGEST)[number % 2]
        keys = ((), ("default",), ("prod",))[number % 3]
        channel_create(wanted=NewChannel(f"c{number}", kind, f"a{number}@b.example", environments=keys), actor=SYSTEM)
    Channel.objects.filter(name__in=["c1", "c2"]).update(paused_at=timezone.now(), paused_reason="it moves")

    faults = held_up(
        admin,
        "/channels",
        _HEAD,
        list(Channel.objects.all()),
        lambda row: str(row.name),
        filters={
            "text=a3@": lambda row: row.name == "c3",
            "kind=digest": lambda row: row.kind == "digest",
            "state=paused": lambda row: row.paused_at is not None,
            "state=waiting": lambda row: row.paused_at is None,
            "environment=prod": lambda row: not row.environments or "prod" in row.environments,
        },
        orders={"name": lambda row: row.name, "kind": lambda row: row.kind},
        column="name",
    )

    assert list(faults) == []


def test_builds__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser) -> None:
    Build.objects.all().delete()
    for number in range(COUNT):
        Build.objects.create(
            environment=Environment.objects.get(key="default"),
            from_generation=10_000 + number,
            to_generation=10_000 + number,
            outcome=("published", "unchanged", "failed")[number % 3],
            at=moment(COUNT - number),
            held_count=number % 5,
            finding_counts={"XDS2001": 1} if number % 7 == 0 else {},
        )
    now = timezone.now()

    faults = held_up(
        admin,
        "/e/default/builds",
        r'data-label="Generations">(\d+) to',
        list(Build.objects.all()),
        lambda row: str(row.from_generation),
        filters={
            "outcome=failed": lambda row: row.outcome == "failed",
            "findings=with": lambda row: row.finding_counts,
            "findings=without&outcome=published": lambda row: row.outcome == "published" and not row.finding_counts,
            "since=9h": lambda row: row.at >= now - timedelta(hours=9),
            "until=9h": lambda row: row.at <= now - timedelta(hours=9),
        },
        orders={
            "ended": lambda row: row.at,
            "outcome": lambda row: row.outcome,
            "held": lambda row: row.held_count,
        },
        column="from_generation",
    )

    assert list(faults) == []


def test_route_cases__each_filter_and_order__is_that_of_a_plain_loop(admin: Browser) -> None:
    case_create(environment_key="default", draft=PAY, actor=DANA)
    row, now = RouteCase.objects.get(), timezone.now()
    for number in range(COUNT):
        row.pk = None
        row.name, row.note = f"c{number:02}", f"of shop-{number % 3}"
        row.holds, row.blocking = number % 3 > 0, number % 4 > 0
        row.author, row.updated_at = ("dana", "ola")[number % 2], moment(number)
        row.save(force_insert=True)
    rows = list(RouteCase.objects.all())

    faults = held_up(
        admin,
        "/e/default/route-cases",
        _HEAD,
        rows,
        lambda row: str(row.name),
        filters={
            "text=shop-2": lambda row: "shop-2" in row.note,
            "state=holds": lambda row: row.holds,
            "state=fails&blocking=no": lambda row: not row.holds and not row.blocking,
            "author=ola": lambda row: row.author == "ola",
            "since=9h": lambda row: row.updated_at >= now - timedelta(hours=9),
            "until=9h": lambda row: row.updated_at <= now - timedelta(hours=9),
        },
        orders={
            "name": lambda row: row.name,
            "state": lambda row: row.holds,
            "changed": lambda row: row.updated_at,
        },
        column="name",
    )

    assert list(faults) == []


def test_rules_and_client_groups__each_filter__is_that_of_a_plain_loop(admin: Browser) -> None:
    for number in range(3):
        matchers = (Selector(identity=f"shop-{number}-*"),)
        draft = GroupDraft(f"g{number}", matchers, (Trust.VERIFIED, Trust.DECLARED)[number % 2])
        group_create(environment_key="default", draft=draft, actor=DANA)
    for number in range(COUNT):
        rule_create(
            environment_key="default",
            draft=RuleDraft(
                (Effect.ALLOW, Effect.DENY, Effect.HIDE)[number % 3],
                f"r{number:02}*",
                client_groups=("g0",) if number % 4 == 0 else (),
                types=(("cluster",), ("cluster", "route"), ())[number % 3],
                message="ask them" if number % 3 == 1 else "",
                enabled=number % 5 > 0,
            ),
            actor=DANA,
        )
    rows = list(AccessRule.objects.prefetch_related("client_groups").order_by("position"))

    wants: dict[str, Callable[[Any], object]] = {
        "text=r1": lambda row: "r1" in row.pattern,
        "text=ask them": lambda row: row.message,
        "effect=deny": lambda row: row.effect == "deny",
        "group=g0": lambda row: [each.key for each in row.client_groups.all()] == ["g0"],
        "speaks=route": lambda row: not row.types or "route" in row.types,
        "state=off&effect=allow": lambda row: not row.enabled and row.effect == "allow",
        "findings=with": lambda row: row.enabled and row.client_groups.all(),
    }
    for asked, fits in wants.items():
        wanted = [row.pk for row in rows if fits(row)]
        shown = re.findall(r'<li id="rule-(\d+)"', "".join(walk(admin, f"/e/default/access?{asked}")))
        assert [int(number) for number in shown] == wanted != [], asked
        assert [row["rule"] for row in file_of(admin, f"/e/default/access?{asked}")] == wanted, asked
    groups = held_up(
        admin,
        "/e/default/access/groups",
        _HEAD,
        list(ClientGroup.objects.all()),
        lambda row: str(row.key),
        filters={
            "text=shop-2": lambda row: row.key == "g2",
            "trust=declared": lambda row: row.trust == "declared",
            "used=yes": lambda row: row.key == "g0",
        },
        orders={
            "key": lambda row: row.key,
            "trust": lambda row: row.trust,
            "rules": lambda row: row.rule_links.count(),
        },
        column="group",
    )

    assert list(groups) == []
    whole, narrowed = (page(admin, f"/e/default/access{asked}") for asked in ("", "?effect=deny"))
    assert [text.count('value="up"') > 0 for text in (whole, narrowed)] == [True, False]
    assert "others may decide before them" in narrowed


@pytest.mark.parametrize("path", LISTS)
def test_list__strange_or_hostile_question__is_said_and_escaped(path: str, admin: Browser) -> None:
    join = "&" if "?" in path else "?"

    assert "cannot be sorted by &#x27;taste&#x27;" in page(admin, f"{path}{join}sort=taste", 422)
    for word in (HOSTILE, "%00", "x" * 5_000, "9999-12-31"):
        for name in ("text", "state", "kind", "role", "since", "by", "group", "speaks", "effect", "outcome", "trust"):
            answer = admin.get(path, {name: word})
            assert answer.status_code in (200, 422), (name, word)
            assert b"<img src=x" not in answer.content


@pytest.mark.parametrize("path", [path for path in LISTS if path.startswith("/e/")])
def test_file__somebody_of_another_environment__has_none(path: str, person: Any) -> None:
    assert person(Role.ADMIN, "prod").get(f"{path}?file=csv").status_code == 404
