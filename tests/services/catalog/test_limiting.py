"""Roles with limits against stored rows, in both databases: a query takes exactly what the rule takes, and a write is
judged by what is there and by what it makes of it.
"""

from itertools import product

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from controlplane.accounts.models import RoleGrant
from controlplane.accounts.people import people_who_may
from controlplane.accounts.principal import ADMIN_SCOPES, Allowed, Principal, Role, Scope
from controlplane.catalog.limiting import change_allowed, rows_allowed
from controlplane.catalog.models import Change, Resource
from controlplane.catalog.selectors import resource_list
from controlplane.catalog.services import Terms, change_apply, change_plan, resource_restore
from controlplane.catalog.values import Delete, Put
from controlplane.common.errors import Conflict, Forbidden, NotFound
from controlplane.common.limits import Limit
from tests.support.manifests import cluster, endpoints, parsed
from tests.support.principals import somebody
from xdscore.resource_types import by_word

DANA = somebody("dana", ADMIN_SCOPES)
CLUSTER = by_word["cluster"]
NAMES = ("pay", "Pay", "pay-eu", "repay", "pa_y", "shop", "päy", "p%y", "PAY-eu")
PATTERNS = ("pay", "pay*", "*pay", "p*y", "pa_y", "p%*", "Pay*", "päy", "pay-eu*", "*-eu", "pay*y")


def pay(*limits: Limit, role: Role = Role.EDITOR) -> Principal:
    return somebody("pay", tuple(Scope(role, "default", (limit,)) for limit in limits))


def write(*names: str, owner: str | None = None, actor: Principal = DANA, prune: bool = False) -> str:
    edits = [Put(parsed(cluster(name))) for name in names]
    terms = Terms(owner, prune)
    return change_apply(environment_key="default", edits=edits, actor=actor, terms=terms).change_id


def refused(*names: str, **said: object) -> Forbidden:
    with pytest.raises(Forbidden) as error:
        write(*names, **said)  # type: ignore[arg-type]
    return error.value


def owner(name: str) -> str:
    return Resource.objects.get(type="cluster", name=name).owner


def test_rows_allowed__any_limit__takes_exactly_what_the_rule_takes(database: str) -> None:
    write(*NAMES[:5], owner="pay")
    write(*NAMES[5:], owner="shop")
    change_apply(environment_key="default", edits=[Put(parsed(endpoints("pay", 80)))], actor=DANA)
    rows = list(Resource.objects.values_list("type", "name", "owner"))
    types = (None, (), ("cluster",), ("endpoint", "route"))

    for whose, words, pattern in product((None, "pay", "Pay", ""), types, (None, *PATTERNS)):
        limit = Limit(whose, words, (pattern,) if pattern is not None else None)
        for allowed in (Allowed(((limit,),)), Allowed(((limit, Limit("pay")), (Limit(names=("sh*", "x")),)))):
            found = set(Resource.objects.filter(rows_allowed(allowed)).values_list("type", "name", "owner"))
            assert found == {row for row in rows if allowed.takes(*row)}, (limit, allowed)


def test_rows_allowed__nothing__no_row(database: str) -> None:
    write("pay")

    assert not resource_list(environment_key="default", allowed=Allowed(())).exists()
    assert not resource_list(environment_key="default", allowed=Allowed(((Limit(names=()),),))).exists()


def test_write__within_the_limit__is_done(database: str) -> None:
    mine = pay(Limit(owner="pay"), Limit(types=("cluster",), names=("pay*",)))
    write("old", owner="pay")

    write("pay-new", "old", actor=mine)
    write("new", owner="pay", actor=mine)

    assert [owner(name) for name in ("pay-new", "old", "new")] == ["", "pay", "pay"]


@pytest.mark.parametrize("becomes", [None, "pay", "shop", ""])
def test_write__of_what_is_another_owners__refused_whatever_owner_it_gets(database: str, becomes: str | None) -> None:
    write("theirs", owner="shop")
    write("nobodys")

    for name in ("theirs", "nobodys"):
        error = refused(name, owner=becomes, actor=pay(Limit(owner="pay")))
        assert name in error.findings[0].detail
    assert (owner("theirs"), owner("nobodys")) == ("shop", "")


def test_write__that_gives_away_what_is_ones_own__refused(database: str) -> None:
    write("mine", owner="pay")

    refused("mine", owner="shop", actor=pay(Limit(owner="pay")))

    assert owner("mine") == "pay"


def test_write__of_another_owners_deleted_one__refused_for_its_history_can_be_restored(database: str) -> None:
    write("gone", owner="shop")
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "gone")], actor=DANA)
    mine = pay(Limit(owner="pay"))

    refused("gone", owner="pay", actor=mine)
    with pytest.raises(Forbidden):
        resource_restore(environment_key="default", kind=CLUSTER, name="gone", revision=1, actor=mine)


def test_write__of_many__refused_as_a_whole_with_each_that_is_outside(database: str) -> None:
    before = Change.objects.count()

    error = refused("pay", "shop", "other", actor=pay(Limit(names=("pay*",))))

    assert [each.resource_name for each in error.findings] == ["other", "shop"]
    assert "resources 'pay*' only" in error.detail
    assert (Change.objects.count(), Resource.objects.count()) == (before, 0)


def test_prune__of_what_is_outside__refused_without_its_names(database: str) -> None:
    write("secret-plan", owner="pay")

    error = refused("pay", owner="pay", prune=True, actor=pay(Limit(names=("pay*",))))

    assert "secret-plan" not in f"{error.detail} {error.findings}"
    assert "prune" in error.findings[-1].detail
    assert Resource.objects.filter(name="secret-plan", deleted=False).exists()


def test_delete__outside__the_same_whether_it_is_there_or_not(database: str) -> None:
    write("there", owner="shop")
    said = []
    for name in ("there", "never"):
        edits = [Delete(CLUSTER, name)]
        with pytest.raises(Forbidden) as error:
            change_apply(environment_key="default", edits=edits, actor=pay(Limit(owner="pay")))
        said.append(f"{error.value.detail} {error.value.findings}".replace(name, "x"))

    assert said[0] == said[1]


def test_limited_viewer__writes_nothing(database: str) -> None:
    write("pay")

    error = refused("pay", actor=pay(Limit(names=("pay*",)), role=Role.VIEWER))

    assert "does not have it" in error.detail


def test_plan__by_limits_alone__tells_nothing_of_others(database: str) -> None:
    mine = pay(Limit(types=("cluster",), names=("pay*",)))
    write("pay")
    change_apply(environment_key="default", edits=[Put(parsed(endpoints("pay", 80)))], actor=DANA)

    mine_sees = change_plan(environment_key="default", edits=[Delete(CLUSTER, "pay")], asker=mine)
    dana_sees = change_plan(environment_key="default", edits=[Delete(CLUSTER, "pay")], asker=DANA)

    assert mine_sees.edits == dana_sees.edits
    assert mine_sees.findings == ()
    with pytest.raises(Forbidden, match="strict"):
        change_plan(environment_key="default", edits=[Put(parsed(cluster()))], asker=mine, terms=Terms(strict=True))
    write("theirs")
    terms = Terms(base_generation=1)
    with pytest.raises(Conflict) as moved:
        change_plan(environment_key="default", edits=[Put(parsed(cluster()))], asker=mine, terms=terms)
    assert moved.value.findings == ()


def test_change_allowed__only_where_all_that_it_wrote_is_within(database: str) -> None:
    mine, both = write("pay"), write("pay-2", "shop")
    allowed = pay(Limit(names=("pay*",))).allowed(Role.VIEWER, "default")

    def may_see(change_id: str) -> bool:
        return change_allowed(allowed, Change.objects.get(public_id=change_id))

    assert (may_see(mine), may_see(both)) == (True, False)
    assert not change_allowed(Allowed(()), Change.objects.get(public_id=mine))


def test_grant__limited_role_about_a_whole_environment__the_database_refuses_it(database: str) -> None:
    user = User.objects.create_user("pia")
    within = Limit(owner="pay").text
    RoleGrant.objects.create(user=user, role="editor", environment="default", within=within)
    RoleGrant.objects.create(user=user, role="editor", environment="default")

    for role, text in (("operator", within), ("admin", "{}"), ("editor", within)):  # the last is there already
        with pytest.raises(IntegrityError), transaction.atomic():
            RoleGrant.objects.create(user=user, role=role, environment="default", within=text)


def test_people_who_may__edit_as_a_whole__leaves_out_those_with_limits(database: str) -> None:
    for name, within in (("pia", Limit(owner="pay").text), ("dana", "")):
        user = User.objects.create_user(name)
        RoleGrant.objects.create(user=user, role="editor", environment="default", within=within)

    assert people_who_may(role=Role.EDITOR, environment="default", limit=9) == ("dana",)


def test_restore__of_what_is_outside__refused_before_anything_is_told(database: str) -> None:
    write("shop")

    with pytest.raises(Forbidden):
        resource_restore(
            environment_key="default", kind=CLUSTER, name="shop", revision=7, actor=pay(Limit(names=("pay*",)))
        )
    with pytest.raises(NotFound):
        resource_restore(environment_key="default", kind=CLUSTER, name="shop", revision=7, actor=DANA)
