"""Answers what rollouts do and did, and what settings would mean. Values only, never rows.

For the REST API (interfaces.md section 8): `GET /environments/{env}/rollouts` is `rollouts_of`, `GET /rollouts/{id}` is
`rollout_get`, `GET /rollouts/{id}/clients` is `rollout_clients`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from django.db.models import Count, Q, QuerySet

from controlplane.catalog.rollout_settings import RolloutSettings
from controlplane.catalog.selectors import environment_get
from controlplane.clients.selectors import client_get
from controlplane.rollouts.listing import resource_value, view_of, views_of
from controlplane.rollouts.lookup import rollout_row
from controlplane.rollouts.models import (
    Rollout,
    RolloutChange,
    RolloutPick,
    RolloutResource,
    RolloutVerdict,
)
from controlplane.rollouts.people import why_of
from controlplane.rollouts.previewing import preview_of
from controlplane.rollouts.stored import counts_of
from controlplane.rollouts.values import (
    OPEN_STATES,
    ChangeStop,
    ClientSide,
    ClientState,
    Outcome,
    Preview,
    ResourceOutcome,
    RolloutBrief,
    RolloutClientPage,
    RolloutLine,
    RolloutPage,
    RolloutState,
    RolloutView,
    RolloutWatch,
    VerdictView,
)
from controlplane.rollouts.watching import clients_page, kinds_counted, now_of
from xdscore.environment_choice import ClientFacts
from xdscore.sides import Side, client_digest

_OPEN: Final = [state.value for state in OPEN_STATES]


def rollout_get(*, public_id: str) -> RolloutView:
    """A rollout with all that its page shows. Raises NotFound."""
    row = rollout_row(public_id)
    return view_of(row, kinds_counted(row, now_of(row)))


def rollout_brief(*, public_id: str) -> RolloutBrief:
    """A rollout in short: where it is, and what clients said in all. Raises NotFound. One query."""
    return _brief(rollout_row(public_id))


def rollout_environment(*, public_id: str) -> str:
    """The key of the environment of a rollout, by which rights are judged. Raises NotFound."""
    return rollout_row(public_id).environment.key


def rollouts_of(
    *,
    environment_key: str,
    states: Collection[RolloutState] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    after: str = "",
    limit: int = 50,
) -> RolloutPage:
    """The rollouts of an environment in these states (none: in any), newest first, after the cursor `after`. `since`,
    `until`: when they started, both included. Two queries.
    """
    rows = Rollout.objects.all()
    rows = rows.filter(started_at__gte=since) if since is not None else rows
    rows = rows.filter(started_at__lte=until) if until is not None else rows
    shown, following = _page(environment_key, states, after, limit, rows)
    counted = (
        RolloutResource.objects.filter(rollout__in=shown)
        .order_by()
        .values_list("rollout")
        .annotate(held=Count("pk"), reverted=Count("pk", filter=Q(outcome=ResourceOutcome.REVERTED.value)))
    )
    numbers = {pk: (held, reverted) for pk, held, reverted in counted}
    lines = tuple(_line(row, *numbers.get(row.pk, (0, 0))) for row in shown)
    return RolloutPage(lines, following)


def rollout_views(
    *, environment_key: str, states: Collection[RolloutState] = (), after: str = "", limit: int = 50
) -> tuple[tuple[RolloutView, ...], str]:
    """The page of rollouts that `rollouts_of` gives, each with all that is told of it but its counts by kind of client,
    and the cursor at which the next page begins (empty on the last). Four queries.
    """
    rows, following = _page(environment_key, states, after, limit, Rollout.objects.all())
    return views_of(rows), following


def rollout_open(*, environment_key: str) -> RolloutView | None:
    """The rollout that is open in an environment; None where there is none."""
    row = _open_row(environment_key)
    return view_of(row, kinds_counted(row, now_of(row))) if row is not None else None


def rollouts_open(*, environment_keys: Collection[str]) -> Mapping[str, str]:
    """The ids of the open rollouts of these environments, by environment key. One query."""
    rows = Rollout.objects.filter(environment__key__in=list(environment_keys), state__in=_OPEN)
    return {key: str(public_id) for key, public_id in rows.values_list("environment__key", "public_id")}


def rollouts_brief(*, environment_keys: Collection[str]) -> Mapping[str, RolloutBrief]:
    """The open rollouts of these environments in short, by environment key. One query."""
    rows = Rollout.objects.filter(environment__key__in=list(environment_keys), state__in=_OPEN)
    return {row.environment.key: _brief(row) for row in rows.select_related("environment")}


def rollouts_open_counted() -> tuple[Mapping[RolloutState, int], datetime | None]:
    """How many rollouts of all environments are open, by state, and when the oldest of them began; None where there is
    none. One query.
    """
    rows = list(Rollout.objects.filter(state__in=_OPEN).values_list("state", "started_at"))
    counted = Counter(state for state, _ in rows)
    return {state: counted[state.value] for state in OPEN_STATES}, min((at for _, at in rows), default=None)


def rollout_clients(
    *, public_id: str, side: Side = Side.CANDIDATE, state: ClientState | None = None, after: str = "", limit: int = 100
) -> RolloutClientPage:
    """The clients on one side of a rollout, with why they are there and what they said, by node id, after the cursor
    `after`. Of a rollout that has ended: who was chosen, and what they had said then. Raises NotFound.
    """
    row = rollout_row(public_id)
    return clients_page(row, now_of(row), side=side, state=state, after=after, limit=limit)


def rollout_watch(
    *,
    public_id: str,
    side: Side = Side.CANDIDATE,
    state: ClientState | None = None,
    after: str = "",
    limit: int = 100,
    refusing: int = 10,
) -> RolloutWatch:
    """All that the page of a rollout shows of this moment, read at once: the rollout, the same page of its clients as
    `rollout_clients` gives, and the first `refusing` clients that refuse something. Raises NotFound.
    """
    row = rollout_row(public_id)
    reading = now_of(row)
    return RolloutWatch(
        view_of(row, kinds_counted(row, reading)),
        clients_page(row, reading, side=side, state=state, after=after, limit=limit),
        clients_page(row, reading, side=Side.CANDIDATE, state=ClientState.REFUSED, after="", limit=refusing).rows,
    )


def rollout_verdicts(*, public_id: str, limit: int = 500) -> tuple[VerdictView, ...]:
    """The verdicts that are kept of a rollout, oldest first; of more than `limit` the newest. One query."""
    rows = RolloutVerdict.objects.filter(rollout__public_id=public_id).order_by("-id").defer("facts")
    return tuple(
        VerdictView(
            row.at,
            row.step + 1,
            Outcome(row.outcome) if row.outcome else None,
            tuple(row.reasons),
            counts_of(row.counts),
        )
        for row in reversed(rows[:limit])
    )


def stops_of_changes(*, change_ids: Collection[str]) -> Mapping[str, ChangeStop]:
    """What rollouts took back of these changes, by change; those of which nothing was taken back are left out. One
    query.
    """
    rows = RolloutResource.objects.filter(
        change__in=list(change_ids), outcome=ResourceOutcome.REVERTED.value
    ).select_related("rollout")
    found: defaultdict[str, list[RolloutResource]] = defaultdict(list)
    for row in rows.order_by("-rollout_id", "type", "name"):
        found[row.change].append(row)
    return {
        change: ChangeStop(
            str(some[0].rollout.public_id),
            tuple(resource_value(row) for row in some),
            tuple(dict.fromkeys(row.incident for row in some if row.incident)),
        )
        for change, some in found.items()
    }


def rollouts_of_change(*, change_id: str) -> tuple[str, ...]:
    """The ids of the rollouts that had something of this change, newest first."""
    rows = RolloutChange.objects.filter(change=change_id).order_by("-rollout_id")
    return tuple(str(public_id) for public_id in rows.values_list("rollout__public_id", flat=True))


def client_side(*, environment_key: str, client_id: str) -> ClientSide | None:
    """On which side of the open rollout a client is, and why; None where no rollout is open. Raises NotFound for a
    client that is not known.
    """
    row = _open_row(environment_key)
    if row is None:
        return None
    client = client_get(public_id=client_id)
    facts = ClientFacts(client.identity, client.node_id, client.node_cluster)
    pick = RolloutPick.objects.filter(rollout=row, client=client_id).first()
    why, because = why_of(row, pick, client_digest(environment_key, facts), facts)
    side = Side.STABLE if why is None else Side.CANDIDATE
    return ClientSide(side, str(row.public_id), row.step + 1, because)


def preview(*, environment_key: str, settings: RolloutSettings) -> Preview:
    """What these settings would mean to the fleet that is connected now, if all that it asks for changed. Raises
    NotFound.
    """
    environment = environment_get(key=environment_key)
    return preview_of(environment.key, settings)


def _page(
    environment_key: str, states: Collection[RolloutState], after: str, limit: int, rows: QuerySet[Rollout]
) -> tuple[list[Rollout], str]:
    rows = rows.filter(environment__key=environment_key).select_related("environment")
    if states:
        rows = rows.filter(state__in=[state.value for state in states])
    if after.isascii() and after.isdigit() and len(after) < 18:
        rows = rows.filter(pk__lt=int(after))
    page = list(rows.order_by("-pk")[: limit + 1])
    return page[:limit], str(page[limit - 1].pk) if len(page) > limit else ""


def _open_row(environment_key: str) -> Rollout | None:
    rows = Rollout.objects.select_related("environment")
    return rows.filter(environment__key=environment_key, state__in=_OPEN).first()


def _brief(row: Rollout) -> RolloutBrief:
    return RolloutBrief(
        id=str(row.public_id),
        state=RolloutState(row.state),
        step=row.step + 1,
        steps=len(row.steps),
        counts=counts_of(row.counts),
        waits_for=row.waits_for,
    )


def _line(row: Rollout, held: int, reverted: int) -> RolloutLine:
    return RolloutLine(
        id=str(row.public_id),
        environment=row.environment.key,
        mode=row.mode,
        state=RolloutState(row.state),
        step=row.step + 1,
        steps=len(row.steps),
        resources=held,
        reverted=reverted,
        outcome=Outcome(row.outcome) if row.outcome else None,
        waits_for=row.waits_for,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
