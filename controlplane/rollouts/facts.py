"""What the judge is told: what each client of the cohort said of what differs, and what else counts. Values only.

They are kept with the verdict that rests on them, so that it can be given again (rollouts.md R11).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from controlplane.catalog.rollout_settings import Unexposed
from controlplane.rollouts.values import Key, Outcome


class Answer(StrEnum):
    """What a client said of one name that differs between the sides, and for which it asks."""

    TAKEN = "taken"  # it acknowledged what the candidate side has
    REFUSED = "refused"  # it refused that
    UNSURE = "unsure"  # it refused a response with this in it, and is not told apart yet (truth.md H1)
    ERROR = "error"  # it was told an error where the candidate side has one
    SENT = "sent"  # it was sent that and did not answer yet
    UNSENT = "unsent"  # it was not sent that yet

    @property
    def final(self) -> bool:
        """Whether nothing else is expected of the client."""
        return self in {Answer.TAKEN, Answer.REFUSED, Answer.ERROR}


@dataclass(frozen=True, slots=True)
class Rules:
    """How one step is judged.

    pilot: whether it is the pilot's.
    answer_within_s: for how long answers are waited for. bake_s: for how long the step goes on at least.
    silent_percent: how many of those that were exposed may be silent.
    errors: whether a new error fails it. lost_percent: by how many percent the cohort may lose more streams than the
        others; None where that does not count.
    approve: whether a person has to agree.
    last: whether everybody is next.
    """

    pilot: bool
    answer_within_s: float = 30.0
    bake_s: float = 0.0
    silent_percent: float = 10.0
    unexposed: Unexposed = Unexposed.ASK
    errors: bool = True
    lost_percent: float | None = None
    approve: bool = False
    last: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """A client of the cohort.

    identity: verified; empty where none was.
    answers: what it said of each name that differs and for which it asks; empty where it asks for none.
    asked_s: for how many seconds it could have been sent all that; None where it could not yet.
    connected: whether it has a stream.
    losses: how often its stream ended after it was sent some of that and before it answered.
    """

    client: str
    kind: str
    identity: str
    answers: Mapping[Key, Answer]
    asked_s: float | None
    connected: bool = True
    losses: int = 0


@dataclass(frozen=True, slots=True)
class Others:
    """The clients of one kind that ask for one name and were not asked: how many, and the identities of them."""

    clients: int
    identities: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Streams:
    """How many clients one side has, and how many of them lost a stream since the step began."""

    clients: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class NewError:
    """An error that clients of the cohort were told of a name of which the stable side has content. `own`: whether the
    name is one of the rollout's.
    """

    key: Key
    code: str
    clients: int
    own: bool


@dataclass(frozen=True, slots=True)
class WebhookSaid:
    """What the webhook at `where` said of this step, or before the first one. `outcome`: None while it did not answer;
    `reason`: in its words, or why there is no answer. `left_s`: for how many seconds more an answer is waited for; None
    where it was not asked yet.
    """

    where: str
    outcome: Outcome | None = None
    reason: str = ""
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class NotInUse:
    """How many clients of the cohort acknowledged a resource and do not ask for what it refers to, in a sentence
    (truth.md H5).
    """

    key: Key
    sentence: str


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a step.

    begun: whether the first step went out, or may.
    served_s: for how many seconds the fleet could have been sent this step; None where it could not yet.
    names: what differs between the sides, and of which a client can say something. wanted: how many connected clients
        ask for each of them.
    others: by (kind, name), who might be asked beside the cohort.
    cohort_streams, control_streams: for the comparison of lost streams.
    errors: what the cohort was told. webhooks: what those said that are asked about this step.
    warming: what clients of the cohort took and do not use yet.
    approved: whether a person agreed. cases: what is said of the route cases that would break on the candidate side.
    """

    served_s: float | None
    names: frozenset[Key]
    wanted: Mapping[Key, int]
    cohort: tuple[Asked, ...] = ()
    others: Mapping[tuple[str, Key], Others] = field(default_factory=dict)
    cohort_streams: Streams = Streams()
    control_streams: Streams = Streams()
    errors: tuple[NewError, ...] = ()
    webhooks: tuple[WebhookSaid, ...] = ()
    warming: tuple[NotInUse, ...] = ()
    approved: bool = False
    begun: bool = True
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ask:
    """One more client of this kind is to be asked for this name, beside the identities in `parties`, which are none
    where nobody of the kind was asked for it yet.
    """

    kind: str
    key: Key
    parties: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What facts mean.

    outcome: None while answers are waited for.
    reasons: sentences.
    blamed: on FAIL, the names that are to be taken back; empty: all of them.
    asks: whom else to ask; only while there is no outcome. consults: whether webhooks are to be asked; likewise.
    waits_for: a sentence; empty where nothing is waited for. left_s: for how many seconds more, at most.
    """

    outcome: Outcome | None
    reasons: tuple[str, ...] = ()
    blamed: frozenset[Key] = frozenset()
    asks: tuple[Ask, ...] = ()
    consults: bool = False
    waits_for: str = ""
    left_s: float | None = None


def facts_json(facts: Facts) -> dict[str, object]:
    """The facts as JSON."""
    return {
        "served_s": facts.served_s,
        "names": sorted([list(key) for key in facts.names]),
        "wanted": [[*key, number] for key, number in sorted(facts.wanted.items())],
        "cohort": [
            [
                each.client,
                each.kind,
                each.identity,
                [[*key, answer.value] for key, answer in sorted(each.answers.items())],
                each.asked_s,
                each.connected,
                each.losses,
            ]
            for each in facts.cohort
        ],
        "others": [
            [kind, *key, others.clients, sorted(others.identities)]
            for (kind, key), others in sorted(facts.others.items())
        ],
        "cohort_streams": [facts.cohort_streams.clients, facts.cohort_streams.lost],
        "control_streams": [facts.control_streams.clients, facts.control_streams.lost],
        "errors": [[*each.key, each.code, each.clients, each.own] for each in facts.errors],
        "webhooks": [
            [each.where, each.outcome.value if each.outcome is not None else None, each.reason, each.left_s]
            for each in facts.webhooks
        ],
        "warming": [[*each.key, each.sentence] for each in facts.warming],
        "approved": facts.approved,
        "begun": facts.begun,
        "cases": list(facts.cases),
    }


def facts_from_json(read: Mapping[str, Any]) -> Facts:
    """The facts that `facts_json` made this of."""
    cohort = tuple(
        Asked(
            client,
            kind,
            identity,
            {(word, name): Answer(answer) for word, name, answer in answers},
            asked_s,
            connected,
            losses,
        )
        for client, kind, identity, answers, asked_s, connected, losses in read["cohort"]
    )
    return Facts(
        served_s=read["served_s"],
        names=frozenset((word, name) for word, name in read["names"]),
        wanted={(word, name): number for word, name, number in read["wanted"]},
        cohort=cohort,
        others={
            (kind, (word, name)): Others(clients, frozenset(identities))
            for kind, word, name, clients, identities in read["others"]
        },
        cohort_streams=Streams(*read["cohort_streams"]),
        control_streams=Streams(*read["control_streams"]),
        errors=tuple(NewError((word, name), code, clients, own) for word, name, code, clients, own in read["errors"]),
        webhooks=tuple(
            WebhookSaid(where, Outcome(outcome) if outcome is not None else None, reason, left_s)
            for where, outcome, reason, left_s in read["webhooks"]
        ),
        warming=tuple(NotInUse((word, name), sentence) for word, name, sentence in read["warming"]),
        approved=bool(read["approved"]),
        begun=bool(read["begun"]),
        cases=tuple(read.get("cases", ())),
    )
