"""Route cases against the real catalogue: what refuses a write, what does not, and what is kept of it."""

from dataclasses import replace

import pytest

from controlplane.access.services import rule_create
from controlplane.access.values import RuleDraft
from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Role, Scope
from controlplane.catalog.guarding import NO_CONSENT, CasesBroken, Consent
from controlplane.catalog.selectors import environment_get
from controlplane.catalog.services import change_apply, change_plan, environment_update
from controlplane.catalog.values import ChangeMade, Delete, Edit, Put
from controlplane.common.errors import Conflict, Forbidden, NotFound, PreconditionFailed
from controlplane.common.limits import Limit
from controlplane.journal.models import AuditEvent
from controlplane.routecases import services
from controlplane.routecases.models import RouteCase
from controlplane.routecases.selectors import case_get, cases_run
from controlplane.routecases.services import Written, case_create, case_delete, case_update, cases_apply
from controlplane.routecases.values import Expected, RouteCaseDraft, RouteCaseState
from controlplane.undo.services import change_undo
from tests.support.manifests import Tree, cluster, endpoints, listener, parsed, route
from tests.support.principals import somebody
from xdscore.access import Effect
from xdscore.environment_choice import ClientFacts
from xdscore.findings import Severity
from xdscore.resource_types import CLUSTER, ENDPOINT
from xdscore.routing.values import Answer, Request
from xdscore.version import VERSION

pytestmark = pytest.mark.django_db(transaction=True, databases=["default", "snapshot_reader"])

DANA = somebody("dana", ADMIN_SCOPES)
PAY = RouteCaseDraft("pays", Request("shop.example", "/pay"), Expected(Answer.ROUTED, cluster="pay"))


@pytest.fixture
def shop(database: str) -> str:
    """A listener whose routes send everything to the cluster `pay`; and another cluster."""
    write(
        *(listener("edge", "shop", 80), route("shop", "pay"), cluster("pay", eds=True), endpoints("pay", 9000)),
        *(cluster("other"), cluster("unused")),
    )
    return database


def write(
    *trees: Tree, delete: tuple[Edit, ...] = (), consent: Consent = NO_CONSENT, actor: Principal = DANA
) -> ChangeMade:
    edits = [*(Put(parsed(tree)) for tree in trees), *delete]
    return change_apply(environment_key="default", edits=edits, actor=actor, consent=consent)


def keep(draft: RouteCaseDraft = PAY) -> RouteCaseState:
    return case_create(environment_key="default", draft=draft, actor=DANA)


def now(case: RouteCaseState) -> RouteCaseState:
    return case_get(environment_key="default", case_id=case.id)


def test_case__kept__says_where_its_request_ends(shop: str) -> None:
    case = keep()

    assert case.holds
    assert case.end.said == "goes to cluster 'pay' (virtual host 'all')"
    assert (case.revision, case.author, case.since) == (1, "dana", "")


def test_write__that_breaks_a_blocking_case__is_refused_with_what_was_and_would_be(shop: str) -> None:
    case = keep()
    keep(replace(PAY, name="pays again"))

    with pytest.raises(CasesBroken) as refused:
        write(route("shop", "other"))

    assert refused.value.broken == 2
    assert [each.code for each in refused.value.findings] == ["XDS3091", "XDS3091"]
    assert refused.value.findings[0].detail == (
        "Route case 'pays' would not hold: GET http://shop.example/pay goes to cluster 'other' (virtual host 'all'). "
        "Before the change it goes to cluster 'pay' (virtual host 'all'). Expected is routed to cluster 'pay'."
    )
    assert now(case) == case
    assert cases_run(environment_key="default")[0].holds


@pytest.mark.parametrize(
    "edits",
    [
        (Delete(CLUSTER, "pay"),),
        (Delete(ENDPOINT, "pay"),),
        (Put(parsed(listener("second", "shop", 80))),),
        (Put(parsed(listener("edge", "nothing", 80))),),
    ],
    ids=["cluster deleted", "endpoints deleted", "another listener has the port", "listener leads elsewhere"],
)
def test_write__of_anything_on_the_way__is_judged(shop: str, edits: tuple[Edit, ...]) -> None:
    keep()

    with pytest.raises(CasesBroken):
        write(delete=edits)


def test_write__that_touches_no_case__asks_one_question_more_and_judges_none(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep()
    monkeypatch.setattr("controlplane.routecases.judging.cases_walked", lambda *_: pytest.fail("it was judged"))

    assert write(cluster("unused", lb_policy="RANDOM"), endpoints("pay", 9001)).changed


def test_case__that_does_not_block__is_a_warning_and_is_kept_with_the_change(shop: str) -> None:
    case = keep(replace(PAY, blocking=False))

    made = write(route("shop", "other"))

    assert [(each.code, each.severity) for each in made.findings] == [("XDS3091", Severity.WARNING)]
    assert (now(case).holds, now(case).since) == (False, made.change_id)
    assert made.change is not None
    assert [each["code"] for each in made.change.findings] == ["XDS3091"]


def test_case__that_failed_before__refuses_nothing_and_is_told(shop: str) -> None:
    case = keep(replace(PAY, expect=Expected(Answer.ROUTED, cluster="other")))
    assert not case.holds

    still = write(route("shop", "unused"))
    mended = write(route("shop", "other"))

    assert [each.code for each in still.findings] == ["XDS3092"]
    assert [(each.code, each.severity) for each in mended.findings] == [("XDS3093", Severity.NOTE)]
    assert (now(case).holds, now(case).since) == (True, mended.change_id)


def test_write__with_the_number_of_cases_accepted__breaks_them_and_leaves_a_trace(shop: str) -> None:
    case = keep()

    with pytest.raises(CasesBroken):
        write(route("shop", "other"), consent=Consent(accept_cases=0))
    made = write(route("shop", "other"), consent=Consent(accept_cases=1))

    assert not now(case).holds
    assert [each.severity for each in made.findings] == [Severity.WARNING]
    event = AuditEvent.objects.get(verb="route_cases.broken")
    assert event.detail == {"cases": ["pays"], "count": 1, "accepted": True}


def test_write__by_who_may_write_a_part_only__is_told_numbers_and_may_accept_nothing(shop: str) -> None:
    keep()
    scope = Scope(Role.EDITOR, "default", (Limit(names=("shop",)),))
    part = somebody("pat", (scope,))

    with pytest.raises(CasesBroken) as refused:
        write(route("shop", "other"), actor=part)
    with pytest.raises(Forbidden):
        write(route("shop", "other"), actor=part, consent=Consent(accept_cases=1))

    assert [each.detail for each in refused.value.findings] == ["1 blocking route cases would not hold any more."]


def test_dry_run__of_what_would_be_refused__says_so_and_leaves_nothing(shop: str) -> None:
    case = keep()

    planned = change_plan(environment_key="default", edits=[Put(parsed(route("shop", "other")))], asker=DANA)

    assert [(each.code, each.severity) for each in planned.findings] == [("XDS3091", Severity.ERROR)]
    assert planned.broken == 1
    assert now(case) == case


def test_undo__that_breaks_a_case__is_refused_like_any_write(shop: str) -> None:
    made = write(route("shop", "other"))
    keep(replace(PAY, expect=Expected(Answer.ROUTED, cluster="other")))

    with pytest.raises(CasesBroken):
        change_undo(public_id=made.change_id, reason="oops", actor=DANA)


def test_case__of_a_client__is_judged_by_what_it_may_read(shop: str) -> None:
    client = ClientFacts(node_id="n")
    case = keep(replace(PAY, client=client))
    keep(replace(PAY, name="anybody"))
    deny = RuleDraft(Effect.DENY, "pay", types=("cluster",))

    with pytest.raises(CasesBroken) as refused:
        rule_create(environment_key="default", draft=deny, actor=DANA)
    dry = rule_create(environment_key="default", draft=deny, actor=DANA, dry_run=True)
    made = rule_create(environment_key="default", draft=deny, actor=DANA, consent=Consent(accept_cases=1))

    assert refused.value.broken == 1
    assert "XDS3091" in [each.code for each in dry.findings]
    assert "The client may not read it: access rule" in now(case).end.because
    assert now(case).since == made.change_id


def test_default_effect__that_breaks_the_case_of_a_client__is_refused(shop: str) -> None:
    keep(replace(PAY, client=ClientFacts(node_id="n")))
    policy = replace(environment_get(key="default").policy, default_effect=Effect.DENY)

    with pytest.raises(CasesBroken):
        environment_update(key="default", policy=policy, actor=DANA)
    dry = environment_update(key="default", policy=policy, actor=DANA, dry_run=True)

    assert [each.code for each in dry.findings] == ["XDS3091"]


def test_case__judged_by_another_version__is_judged_again(shop: str) -> None:
    case = keep()
    RouteCase.objects.update(judged_by="0.0.0", uses=[])

    with pytest.raises(CasesBroken):
        write(route("shop", "other"))
    write(cluster("unused", lb_policy="RANDOM"))

    row = RouteCase.objects.get(pk=case.id)
    assert (row.judged_by, row.uses) == (VERSION, ["cluster pay", "endpoint pay", "listener ", "route shop"])


def test_case__changed__is_a_revision_and_stands_since_then(shop: str) -> None:
    case = keep()
    other = replace(PAY, expect=Expected(Answer.ROUTED, cluster="other"), note="moved")

    changed = case_update(
        environment_key="default",
        case_id=case.id,
        draft=other,
        expect=frozenset({1}),
        actor=somebody("eve", ADMIN_SCOPES),
    )
    same = case_update(environment_key="default", case_id=case.id, draft=other, actor=DANA)

    assert (changed.revision, changed.author, changed.created_by, changed.holds) == (2, "eve", "dana", False)
    assert same.revision == 2
    with pytest.raises(PreconditionFailed) as failed:
        case_delete(environment_key="default", case_id=case.id, expect=frozenset({1}), actor=DANA)
    assert failed.value.etag == '"r2"'
    case_delete(environment_key="default", case_id=case.id, actor=DANA)
    with pytest.raises(NotFound):
        now(case)
    verbs = AuditEvent.objects.filter(subject=f"route_case/{case.id}").order_by("pk").values_list("verb", flat=True)
    assert list(verbs) == ["route_case.created", "route_case.updated", "route_case.deleted"]


def test_case__whose_name_is_taken_or_that_is_one_too_many__is_refused(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep()
    second = keep(replace(PAY, name="second"))
    monkeypatch.setattr(services, "MAX_CASES", 2)

    with pytest.raises(Conflict, match="already"):
        keep()
    with pytest.raises(Conflict, match="already"):
        case_update(environment_key="default", case_id=second.id, draft=PAY, actor=DANA)
    with pytest.raises(Conflict, match="at most 2"):
        keep(replace(PAY, name="third"))
    with pytest.raises(Conflict, match="at most 2"):
        cases_apply(environment_key="default", drafts=[replace(PAY, name="third")], actor=DANA)


def test_cases__applied_together__are_created_updated_or_left(shop: str) -> None:
    keep()
    keep(replace(PAY, name="second"))
    drafts = [PAY, replace(PAY, name="second", note="why"), replace(PAY, name="third")]

    dry = cases_apply(environment_key="default", drafts=drafts, actor=DANA, dry_run=True)
    assert RouteCase.objects.count() == 2
    done = cases_apply(environment_key="default", drafts=drafts, actor=DANA)

    fates = [Written.UNCHANGED, Written.UPDATED, Written.CREATED]
    assert [each.written for each in dry] == [each.written for each in done] == fates
    assert list(RouteCase.objects.order_by("name").values_list("name", "revision", "note")) == [
        ("pays", 1, ""),
        ("second", 2, "why"),
        ("third", 1, ""),
    ]
    with pytest.raises(Conflict, match="several"):
        cases_apply(environment_key="default", drafts=[PAY, PAY], actor=DANA)
