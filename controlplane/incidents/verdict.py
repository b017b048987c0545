"""Decides whether what clients refuse may be taken out of service for all of them (decisions A7). Pure.

One client must never roll back a fleet (reliability N4, threat 14). Whoever holds a credential can invent as many node
ids as it likes, so that refusals weigh by verified identity and acknowledgements by client: what acts by itself needs
several identities that were verified, takes nothing from as many clients as acknowledged it, and, where identities are
shared, nothing that anybody acknowledged. NACKs come in milliseconds and ACKs of warming clusters in up to 15 seconds
(decisions D25), so that it waits for those whose ACKs could still outweigh. What does not suffice to act may suffice
to ask a person.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

MIN_CLIENTS = 2
MIN_IDENTITIES = 2
MIN_SHARE = 0.10
# An ACK may take 15 seconds (decisions D25), because Envoy answers for a cluster once that has warmed, and two more
# until it is known here.
ANSWER_WAIT_S = 17.0

ClientKey = tuple[str, str]
"""The identity and node id that make two clients distinct. The identity is empty where none was verified."""


class Outcome(Enum):
    """The outcome of judging a revision. PASS: nobody refuses it. FAIL: take it out of service. INCONCLUSIVE: not for
    clients to say; a person may.
    """

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of clients to one revision, by client id.

    `refused`: who refuses it; that counts, whatever else they acknowledged since. `acknowledged`: who acknowledged this
    very revision; `proven`: somebody did, known by name or not. `served`: who was sent it or is about to be; whoever
    answered was, whether or not that was recorded. `age_s`: for at least so many seconds somebody has refused it.
    """

    revision: int
    refused: Mapping[str, ClientKey]
    acknowledged: Mapping[str, ClientKey]
    served: Mapping[str, ClientKey]
    proven: bool
    age_s: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of judging a revision, and the sentence that says why, without a full stop. `asks`: so many refuse it
    that a person is to be asked, where clients do not decide.
    """

    outcome: Outcome
    reason: str
    asks: bool = False


@dataclass(frozen=True, slots=True)
class _Sides:
    """The different clients of a revision: those that refuse it, those that took it, and all that count."""

    refusing: frozenset[ClientKey]
    taking: frozenset[ClientKey]
    everybody: frozenset[ClientKey]

    @property
    def identities(self) -> int:
        """The number of verified identities that refuse the revision; each counts once, and only where a tenth of its
        own clients do.
        """
        refusing = Counter(identity for identity, _ in self.refusing if identity)
        own = Counter(identity for identity, _ in self.everybody)
        return sum(count >= MIN_SHARE * own[identity] for identity, count in refusing.items())

    @property
    def parties(self) -> int:
        """The number of different parties among all clients: a verified identity is one, whatever node ids it uses."""
        return len({identity or (identity, node_id) for identity, node_id in self.everybody})

    @property
    def many_identities(self) -> bool:
        """Whether enough clients refuse the revision if each identity counted as one client: who invents node ids makes
        nobody few.
        """
        return self.identities >= MIN_IDENTITIES and self.identities >= MIN_SHARE * self.parties

    @property
    def shared(self) -> bool:
        """Whether clients cannot be counted, because some share one identity or could prove none."""
        return len({identity for identity, _ in self.everybody if identity}) < len(self.everybody)

    @property
    def counts(self) -> str:
        return f"{len(self.refusing)} of {len(self.everybody)} clients refused it"


def judge(answers: Answers) -> Verdict:
    """The verdict over one revision. Neither the order nor the number of reports changes it."""
    refusing = frozenset(answers.refused.values())
    taking = frozenset(answers.acknowledged.values()) - refusing
    sides = _Sides(refusing, taking, frozenset(answers.served.values()) | refusing | taking)
    if not refusing:
        return Verdict(Outcome.PASS, sides.counts)
    if few := _too_few(sides):
        return Verdict(Outcome.INCONCLUSIVE, f"{sides.counts}; {few}")
    if doubt := _doubt(sides, answers):
        return Verdict(Outcome.INCONCLUSIVE, f"{doubt}, so that a person decides", asks=True)
    silent = sides.everybody - refusing - taking
    if silent and answers.age_s < ANSWER_WAIT_S and _doubt(_Sides(refusing, taking | silent, sides.everybody), answers):
        return Verdict(
            Outcome.INCONCLUSIVE, f"{sides.counts}; {len(silent)} that were sent it may still acknowledge it"
        )
    return Verdict(Outcome.FAIL, sides.counts, asks=True)


def _too_few(sides: _Sides) -> str:
    """The reason why these refusals are too few to ask a person about; empty when they are not. A client that is alone
    is asked about.
    """
    refusing, everybody = len(sides.refusing), len(sides.everybody)
    if everybody > 1 and refusing < MIN_CLIENTS:
        return f"at least {MIN_CLIENTS} must"
    if refusing < MIN_SHARE * everybody and not sides.many_identities:
        return f"at least {MIN_SHARE:.0%} must"
    return ""


def _doubt(sides: _Sides, answers: Answers) -> str:
    """The reason, counts first, why these refusals do not decide for everybody; empty when they do."""
    proven = answers.proven or bool(sides.taking)
    who = ""
    if sides.identities == 0:
        who = "no identity is verified"
    elif sides.identities < MIN_IDENTITIES:
        who = "only one verified identity refuses it"
    elif proven and sides.shared:
        who = "some clients share an identity or can prove none"
    # Where nobody's identity is shared, a client is an identity.
    if proven and (who or len(sides.taking) >= len(sides.refusing)):
        return _outweighed(sides, answers.revision, who)
    if len(sides.everybody) == 1:
        return f"{sides.counts}; it is the only client"
    if who:
        return f"{sides.counts}; {who}"
    if sides.identities < MIN_SHARE * sides.parties:
        return f"{sides.counts}, with {sides.identities} of {sides.parties} identities; at least {MIN_SHARE:.0%} must"
    return ""


def _outweighed(sides: _Sides, revision: int, who: str) -> str:
    """The reason that clients which acknowledged the revision keep it and, where they are fewer than refuse it, why."""
    taking, refusing = len(sides.taking), len(sides.refusing)
    who_took = "clients" if not taking else "1 client" if taking == 1 else f"{taking} clients"
    said = f"{who_took} acknowledged r{revision}; {refusing} {'refuses' if refusing == 1 else 'refuse'} it"
    return said if taking >= refusing else f"{said}, but {who}"
