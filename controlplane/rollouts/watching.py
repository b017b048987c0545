"""Shows a rollout as it is at this moment: who is on which side, what each said, and how many of each kind
(rollouts.md R14).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeVar

from controlplane.catalog.selectors import environment_state
from controlplane.catalog.staging import candidate_side, names_candidate
from controlplane.clients.clock import database_now
from controlplane.clients.holdings import messages_of
from controlplane.rollouts.cohort import Member
from controlplane.rollouts.facts import Answer, Asked, Rules
from controlplane.rollouts.judge import state_of
from controlplane.rollouts.models import Rollout, RolloutPick
from controlplane.rollouts.people import NOT_YET, why_of
from controlplane.rollouts.reading import Reading, facts_read
from controlplane.rollouts.stored import rules_of, settings_of, table_groups
from controlplane.rollouts.values import (
    ClientState,
    Counts,
    KindCounts,
    NameAnswer,
    RolloutClient,
    RolloutClientPage,
    RolloutState,
    Why,
)
from xdscore.environment_choice import ClientFacts
from xdscore.sides import Side

_MAX_ANSWERS: Final = 50
_MAX_TOLD: Final = 5
_STATES: Final[Mapping[Answer, ClientState]] = {
    Answer.TAKEN: ClientState.TAKEN,
    Answer.REFUSED: ClientState.REFUSED,
    Answer.UNSURE: ClientState.REFUSED,
    Answer.ERROR: ClientState.TAKEN,
    Answer.SENT: ClientState.WAITING,
    Answer.UNSENT: ClientState.WAITING,
}
_WORST_FIRST: Final = (ClientState.REFUSED, ClientState.WAITING, ClientState.TAKEN)


def now_of(row: Rollout) -> Reading | None:
    """What is known of an open rollout at this moment; None where it is over."""
    if RolloutState(row.state).ended:
        return None
    side = candidate_side(row.environment.key)
    if side is None or side.rollout != str(row.public_id):
        return None
    environment = environment_state(row.environment)
    return facts_read(environment, row, side, names_candidate(environment.key), now=database_now())


def kinds_counted(row: Rollout, reading: Reading | None) -> tuple[KindCounts, ...]:
    """How many clients of each kind there are, and what they said; of a rollout that is over (`reading` is None), of
    those that were chosen.
    """
    if reading is None:
        by_kind: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for kind, state in RolloutPick.objects.filter(rollout=row).values_list("kind", "state"):
            by_kind[kind][state] += 1
        return tuple(
            KindCounts(kind, 0, _counts(states), covered=kind not in row.uncovered)
            for kind, states in sorted(by_kind.items())
        )
    rules = rules_of(settings_of(row), row.step)
    connected = Counter(known.member.kind for known in reading.fleet.clients.values() if known.certain)
    states: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for asked in reading.cohort:
        states[asked.kind][state_of(asked, rules).value] += 1
    return tuple(
        KindCounts(kind, connected[kind], _counts(states[kind]), covered=kind not in row.uncovered)
        for kind in sorted({*connected, *states})
    )


def _counts(states: Counter[str]) -> Counts:
    cohort = states.total()
    return Counts(
        cohort=cohort,
        exposed=cohort - states[ClientState.UNEXPOSED.value] - states[ClientState.GONE.value] - states[""],
        acked=states[ClientState.TAKEN.value],
        refused=states[ClientState.REFUSED.value],
        silent=states[ClientState.SILENT.value],
        lost=states[ClientState.LOST.value],
    )


def clients_page(
    row: Rollout, reading: Reading | None, *, side: Side, state: ClientState | None, after: str, limit: int
) -> RolloutClientPage:
    """A page of the clients on one side of a rollout. `reading`: what is known of it now; None once it is over."""
    if reading is None:
        chosen = RolloutPick.objects.filter(rollout=row) if side is Side.CANDIDATE else ()
        page, more = _page([(_line(each), each) for each in map(_ended, chosen)], state, after, limit)
        return RolloutClientPage(tuple(page), more)
    if side is Side.STABLE:
        members = (
            known.member
            for known in reading.fleet.clients.values()
            if known.certain and known.member.digest not in reading.inside
        )
        page, more = _page([(_line(each), each) for each in map(_outside, members)], state, after, limit)
        return RolloutClientPage(tuple(page), more)
    # Of thousands only those of one page are looked at closely.
    rules = rules_of(settings_of(row), row.step)
    lines = [
        (_Line(_facts(reading, each).node_id, each.client, state_of(each, rules)), each) for each in reading.cohort
    ]
    some, more = _page(lines, state, after, limit)
    return RolloutClientPage(_in_their_words(row.environment.key, _inside(row, reading, rules, some)), more)


class _Line(NamedTuple):
    """What a client is found by in a list."""

    node_id: str
    client: str
    state: ClientState


_Listed = TypeVar("_Listed")


def _line(client: RolloutClient) -> _Line:
    return _Line(client.node_id, client.client, client.state)


def _page(
    rows: Iterable[tuple[_Line, _Listed]], state: ClientState | None, after: str, limit: int
) -> tuple[list[_Listed], str]:
    """A page of what is in this state, by node id; and the cursor of the next one, or an empty text."""
    fitting = [row for row in rows if (state is None or row[0].state is state) and _cursor(row[0]) > after]
    fitting.sort(key=lambda row: _cursor(row[0]))
    page = fitting[:limit]
    return [listed for _, listed in page], _cursor(page[-1][0]) if len(fitting) > limit else ""


def _facts(reading: Reading, asked: Asked) -> ClientFacts:
    """What is known of a client of the cohort, which may be gone."""
    known, pick = reading.fleet.clients.get(asked.client), reading.picks.get(asked.client)
    return known.facts if known is not None else ClientFacts(asked.identity, pick.node_id if pick else "")


def _inside(row: Rollout, reading: Reading, rules: Rules, page: Iterable[Asked]) -> Iterator[RolloutClient]:
    groups = table_groups(row, row.step)
    for asked in page:
        known = reading.fleet.clients.get(asked.client)
        pick = reading.picks.get(asked.client)
        facts = _facts(reading, asked)
        why: Why | None = Why.SHARE
        because = "it was drawn by chance"
        if pick or known:
            why, because = why_of(row, pick, known.member.digest if known else "", facts, groups)
        yield RolloutClient(
            client=asked.client,
            node_id=facts.node_id,
            identity=asked.identity,
            kind=asked.kind,
            side=Side.CANDIDATE,
            why=why,
            because=because,
            step=(pick.step if pick is not None else row.step) + 1,
            state=state_of(asked, rules),
            answers=_answers(asked, rules),
        )


def _outside(member: Member) -> RolloutClient:
    return RolloutClient(
        client=member.client,
        node_id=member.node_id,
        identity=member.identity,
        kind=member.kind,
        side=Side.STABLE,
        why=None,
        because=NOT_YET,
        step=0,
        state=ClientState.WAITING if member.asks else ClientState.UNEXPOSED,
    )


def _ended(pick: RolloutPick) -> RolloutClient:
    return RolloutClient(
        client=pick.client,
        node_id=pick.node_id,
        identity=pick.identity,
        kind=pick.kind,
        side=Side.CANDIDATE,
        why=Why(pick.why),
        because=pick.because,
        step=pick.step + 1,
        state=ClientState(pick.state) if pick.state else ClientState.GONE,
    )


def _answers(asked: Asked, rules: Rules) -> tuple[NameAnswer, ...]:
    late = asked.asked_s is not None and asked.asked_s >= rules.answer_within_s
    found = []
    for (word, name), answer in sorted(asked.answers.items()):
        state = _STATES[answer]
        if not answer.final and answer is not Answer.UNSURE:
            state = ClientState.LOST if asked.losses else ClientState.SILENT if late else state
        found.append(NameAnswer(word, name, state))
    order = {state: place for place, state in enumerate(_WORST_FIRST)}
    return tuple(sorted(found, key=lambda each: order.get(each.state, 0)))[:_MAX_ANSWERS]


def _in_their_words(environment_key: str, clients: Iterable[RolloutClient]) -> tuple[RolloutClient, ...]:
    """The clients with what each said of the first names that it refused. A query for each type, and four more."""
    page = tuple(clients)
    refused = {
        (row.client, each.type, each.name)
        for row in page
        for each in [each for each in row.answers if each.state is ClientState.REFUSED][:_MAX_TOLD]
    }
    nodes = {row.client: row.node_id for row in page}
    said = messages_of(environment_key=environment_key, nodes=nodes, names=refused) if refused else {}
    return tuple(
        replace(
            row,
            answers=tuple(
                replace(each, message=said.get((row.client, each.type, each.name), each.message))
                for each in row.answers
            ),
        )
        for row in page
    )


def _cursor(row: _Line) -> str:
    return f"{row.node_id}\0{row.client}"
