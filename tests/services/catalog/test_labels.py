"""Labels and owners of resources, in both databases: a change that reaches no client, and that is taken back."""

from datetime import timedelta

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controlplane.accounts.principal import ADMIN_SCOPES, Principal, Role, Scope
from controlplane.builder.services import build
from controlplane.catalog.choices import ChangeKind
from controlplane.catalog.freezes import Freeze
from controlplane.catalog.limiting import change_allowed
from controlplane.catalog.marking import Mark, labels_of
from controlplane.catalog.models import Change, Environment, Resource, Revision
from controlplane.catalog.review import ReviewSettings
from controlplane.catalog.selectors import change_get, resource_list, resource_row
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.values import ChangeMade, Delete, Put
from controlplane.common.errors import Forbidden, InputInvalid, NotFound, PreconditionFailed
from controlplane.common.limits import Limit
from controlplane.database.aliases import READER
from controlplane.journal.models import AuditEvent
from controlplane.undo.rights import may_undo
from controlplane.undo.services import undo_way
from tests.services.undo.hands import put, undo
from tests.services.undo.hands import settings as policy_set
from tests.support.manifests import cluster, parsed
from tests.support.principals import somebody
from xdscore.labels import LabelEdits, Requirement, edited, selector_read, unpacked
from xdscore.resource_types import CLUSTER

pytestmark = [
    pytest.mark.django_db(transaction=True, databases=["default", READER]),
    pytest.mark.usefixtures("database"),
]

DANA = somebody("dana", ADMIN_SCOPES)
PIA = somebody("pia", (Scope(Role.EDITOR, "default", (Limit(owner="pay"),)),))
KEYS = ("team", "tier", "example.com/x")
EDITS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([None, "", "pay", "Pay"]), min_size=1)


def mark(
    *names: str,
    labels: LabelEdits | None = None,
    owner: str | None = None,
    actor: Principal = DANA,
    expect: int | None = None,
) -> ChangeMade:
    marks = [Mark(CLUSTER, name, owner, labels or {}) for name in names]
    if expect is not None:
        marks = [Mark(CLUSTER, name, owner, labels or {}, expect=frozenset({expect})) for name in names]
    return change_apply(environment_key="default", edits=(), marks=marks, actor=actor, request_id="r-1")


def labels(name: str) -> dict[str, str]:
    return unpacked(Resource.objects.get(name=name).labels)


def names(selector: str) -> list[str]:
    return [row.name for row in resource_list(environment_key="default", labels=selector_read(selector))]


def environment() -> Environment:
    return Environment.objects.get(key="default")


def test_mark__labels_and_owner__are_a_change_without_revision_or_snapshot() -> None:
    put(cluster("pay"))
    build(environment_id=environment().pk)
    before = environment()

    made = mark("pay", labels={"team": "pay", "tier": ""}, owner="Pia")
    build(environment_id=before.pk)

    row = Resource.objects.get(name="pay")
    assert (row.owner, labels("pay"), row.counter) == ("Pia", {"team": "pay", "tier": ""}, 1)
    after = environment()
    assert (after.generation, after.built_generation) == (before.generation + 1, before.generation + 1)
    assert after.epoch == before.epoch
    change = change_get(public_id=made.change_id)
    assert (change.kind, Revision.objects.filter(change=change).count()) == (ChangeKind.LABELS.value, 0)
    event = AuditEvent.objects.get(subject=made.change_id)
    assert (event.verb, event.detail["marked"], event.request_id) == ("change.saved", 1, "r-1")
    line = resource_row(resource_list(environment_key="default").get(name="pay"))
    assert line.label_words == ("team=pay", "tier=")


def test_mark__as_it_is_already__changes_nothing() -> None:
    put(cluster("pay"))
    mark("pay", labels={"team": "pay"}, owner="Pia")
    count = Change.objects.count()

    assert not mark("pay", labels={"team": "pay", "gone": None}, owner="Pia").changed
    assert Change.objects.count() == count


def test_mark__while_on_hold_frozen_and_under_review__is_done_for_no_client_is_told() -> None:
    put(cluster("pay"))
    now = timezone.now()
    freeze = Freeze(reason="night", begins=now - timedelta(hours=1), ends=now + timedelta(hours=1))
    policy_set(hold="wait", freezes=(freeze,), review=ReviewSettings(required=True))

    assert mark("pay", labels={"team": "pay"}, owner="Pia").changed
    assert labels("pay") == {"team": "pay"}


def test_mark__of_what_is_not_there_or_was_written_since__is_refused_with_each_by_name() -> None:
    put(cluster("pay"), cluster("shop"), cluster("gone"))
    put(cluster("shop", connect_timeout="2s"), delete=("gone",))

    with pytest.raises(NotFound) as absent:
        mark("pay", "gone", "never", labels={"team": "pay"})
    with pytest.raises(PreconditionFailed) as stale:
        mark("pay", "shop", "gone", labels={"team": "pay"}, expect=1)

    assert [each.resource_name for each in absent.value.findings] == ["gone", "never"]
    assert [each.detail for each in stale.value.findings] == [
        "The cluster 'shop' is at revision r2; the request expected otherwise.",
        "The cluster 'gone' does not exist; the request expected otherwise.",
    ]
    assert labels("pay") == {}


def test_mark__more_labels_than_allowed__is_refused_by_name() -> None:
    put(cluster("pay"))
    mark("pay", labels={f"k{number}": "" for number in range(60)})

    with pytest.raises(InputInvalid) as error:
        mark("pay", labels={f"l{number}": "" for number in range(5)})

    assert [each.detail for each in error.value.findings] == [
        "The cluster 'pay' would have 65 labels; at most 64 are allowed."
    ]


def test_mark__of_others_resources__is_refused_by_name_and_nothing_is_given_away() -> None:
    put(cluster("mine"), owner="pay")
    put(cluster("theirs"), owner="shop")

    mark("mine", labels={"team": "pay"}, actor=PIA)
    for wrong in ({"labels": {"team": "pay"}}, {"owner": "pay"}):
        with pytest.raises(Forbidden) as error:
            mark("mine", "theirs", actor=PIA, **wrong)
        assert [each.resource_name for each in error.value.findings] == ["theirs"]
    with pytest.raises(Forbidden):
        mark("mine", owner="shop", actor=PIA)

    assert (labels("mine"), labels("theirs")) == ({"team": "pay"}, {})


def test_undo__of_labels_and_owner__puts_back_what_was_not_set_again_since() -> None:
    put(cluster("pay"), cluster("shop"), owner="before")
    mark("pay", labels={"team": "old", "kept": "1"})
    made = mark("pay", "shop", labels={"team": "new", "more": "2"}, owner="after")
    mark("pay", labels={"more": "3"})
    assert undo_way(change=change_get(public_id=made.change_id)).steps == (
        "The cluster 'pay' belongs to 'before' again and is labelled team=old.",
        "The cluster 'shop' belongs to 'before' again and is labelled more- team-.",
    )

    undone = undo(made.change_id)

    assert labels("pay") == {"team": "old", "kept": "1", "more": "3"}
    assert (labels("shop"), Resource.objects.get(name="shop").owner) == ({}, "before")
    assert change_get(public_id=undone.change).kind == ChangeKind.LABELS.value
    undo(undone.change)
    assert labels("shop") == {"team": "new", "more": "2"}


def test_undo__of_contents_and_labels_in_one_change__takes_both_back() -> None:
    put(cluster("pay"))
    made = put({**cluster("pay", connect_timeout="2s"), "@labels": {"team": "pay"}}, owner="Pia")
    assert (made.edits[0].revision, labels("pay")) == (2, {"team": "pay"})

    undo(made.change_id)

    row = Resource.objects.get(name="pay")
    assert (row.counter, row.labels, row.owner) == (3, "", "")


def test_limited_role__sees_and_undoes_changes_of_labels_within_its_limits_alone() -> None:
    put(cluster("mine"), owner="pay")
    put(cluster("theirs"), owner="shop")
    allowed = PIA.allowed(Role.EDITOR, "default")

    own = change_get(public_id=mark("mine", labels={"a": "1"}).change_id)
    both = change_get(public_id=mark("mine", "theirs", labels={"a": "2"}).change_id)

    assert [change_allowed(allowed, each) for each in (own, both)] == [True, False]
    assert [may_undo(PIA, each) for each in (own, both)] == [True, False]


def test_put__manifest_with_labels__has_exactly_these_and_one_without_leaves_them() -> None:
    put({**cluster("pay"), "@labels": {"team": "pay", "old": "1"}})
    assert labels("pay") == {"team": "pay", "old": "1"}

    only_labels = put({**cluster("pay"), "@labels": {"team": "pay"}})
    silent = put(cluster("pay", connect_timeout="2s"))

    assert (labels("pay"), only_labels.edits) == ({"team": "pay"}, ())
    assert labels_of(change_get(public_id=only_labels.change_id).undo)[0].words == "-old=1"
    assert [change_get(public_id=each.change_id).kind for each in (only_labels, silent)] == ["labels", "resources"]
    assert put({**cluster("pay", connect_timeout="2s"), "@labels": {}}).changed
    assert labels("pay") == {}


def test_plan__labels_alone__says_what_would_move_and_leaves_nothing() -> None:
    put(cluster("pay"))
    edits = [Put(parsed({**cluster("pay"), "@labels": {"team": "pay"}}))]

    planned = change_plan(environment_key="default", edits=edits, asker=DANA, terms=Terms())

    assert (planned.edits, [each.labels for each in planned.marked]) == ((), [({}, {"team": "pay"})])
    assert labels("pay") == {}


def test_delete_and_create_again__labels_are_there_again_as_the_owner_is() -> None:
    put({**cluster("pay"), "@labels": {"team": "pay"}}, owner="Pia")
    put(delete=("pay",))
    assert names("team=pay") == []

    put(cluster("pay"))

    assert names("team=pay") == ["pay"]


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=pay", ["a"]),
        ("team=Pay", ["b"]),
        ("team", ["a", "b", "d"]),
        ("!team", ["c"]),
        ("team!=pay", ["b", "c", "d"]),
        ("team=", ["d"]),
        ("team,tier=1", ["b"]),
        ("tea", []),
        ("team=pa", []),
        ("example.com/x=y", ["c"]),
    ],
)
def test_list__by_labels__takes_exactly_what_the_selector_says(selector: str, found: list[str]) -> None:
    put(*(cluster(name) for name in "abcd"))
    mark("a", labels={"team": "pay"})
    mark("b", labels={"team": "Pay", "tier": "1"})
    mark("c", labels={"example.com/x": "y"})
    mark("d", labels={"team": "", "xteam": "pay"})

    assert names(selector) == found


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDITS, min_size=1, max_size=5))
def test_mark__any_edits_and_each_taken_back__is_what_it_was(steps: list[dict[str, str | None]]) -> None:
    put(cluster("h"))
    model: dict[str, str] = labels("h")
    start, changes = dict(model), []
    for step in steps:
        made = mark("h", labels=step)
        model = edited(model, step)
        assert labels("h") == model
        for key in KEYS:
            wanted = Requirement(key, model.get(key, "pay"))
            assert bool(resource_list(environment_key="default", labels=(wanted,))) is wanted.takes(model)
        changes += [made.change_id] if made.changed else []

    for change in reversed(changes):
        undo(change)

    assert labels("h") == start
    change_apply(environment_key="default", edits=[Delete(CLUSTER, "h")], actor=DANA)
    Resource.objects.filter(name="h").update(labels="")
