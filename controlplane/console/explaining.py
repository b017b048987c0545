"""Why a client does, or does not, have a resource: the question, the answer, and the ladder that leads to it.

Error texts link here (interfaces.md section 5): `e` environment, `t` type, `n` name; `c` names a client, by its id or
its node id, and `at` an earlier snapshot or a time.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path, reverse
from django.utils import timezone
from django.utils.text import Truncator

from controlplane.accounts.principal import Role
from controlplane.common.errors import ControlPlaneError, InputInvalid
from controlplane.console.explain_askers import WhoAsks, verdict_key, who_asks
from controlplane.console.explain_denial import Denial, denial_of
from controlplane.console.pages import Page
from controlplane.console.places import Place, Section
from controlplane.console.resources import resource_url
from controlplane.console.times import iso_text, zone_given
from controlplane.explain.askers import askers_of
from controlplane.explain.selectors import explain, question_of
from controlplane.explain.values import Ladder, Link, Question, RungState, clock
from controlplane.http.moments import clock_problem, moment_typed
from xdscore.codes import CATALOGUE, shown
from xdscore.environment_choice import DEFAULT_ENVIRONMENT
from xdscore.names import name_problem
from xdscore.resource_types import RESOURCE_TYPES, by_word

_MAX_CLIENT_CHARS: Final = 1_024
_MAX_EPOCH_CHARS: Final = 18
_MAX_AT_CHARS: Final = 40
_MAX_SENTENCE_CHARS: Final = 1_500

_SIGNS: Final = {RungState.OK: "ok", RungState.FAIL: "FAIL", RungState.UNKNOWN: "?", RungState.SKIPPED: "-"}
_TITLES: Final = {
    1: "Who is this client?",
    2: "Which environment?",
    3: "Does it ask for this name?",
    4: "Does the name exist?",
    5: "May it read the name?",
    6: "What was it sent?",
    7: "What did it answer?",
    8: "What does it do now?",
    9: "Which side of the rollout?",
}
_TITLES_THEN: Final = {
    3: "Did it ask for this name?",
    4: "Did the name exist?",
    5: "Might it read the name?",
    6: "What had it been sent?",
    7: "What had it answered?",
    8: "What did it do then?",
}
# Which rung a link belongs to.
_RUNG_OF: Final = {"client": 1, "history": 4, "change": 4, "snapshot": 4, "rule": 5, "incident": 7, "rollout": 9}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question to Explain, in the words that were typed: `word` is a type, `client` a client's id or node id, and
    `at` an epoch or a time, which is RFC 3339 if it was understood.
    """

    environment: str
    word: str
    name: str
    client: str
    at: str
    code: str = ""
    """The code that the pasted text says its client was told; empty where none was pasted."""
    unclear: str = ""
    """Why `at` names no time, where clocks of the zone in which it was typed never show it, or twice; else empty."""

    @property
    def empty(self) -> bool:
        """Whether nothing was asked yet. A question needs at least a name."""
        return not self.name

    def address(self, **changed: str) -> str:
        """The URL of the page that answers this question, with some of its values replaced by `changed`."""
        given = {"e": self.environment, "t": self.word, "n": self.name, "c": self.client, "at": self.at, **changed}
        return f"{reverse('explain')}?{urlencode({key: value for key, value in given.items() if value})}"


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a page where there is more to read."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class RungLine:
    """A question of an explanation with its answer, as the page shows it. `look`: the key in `states.LOOKS` of its
    badge.
    """

    number: int
    title: str
    look: str
    text: str
    links: tuple[PageLink, ...]


class ExplainPage(Page):
    """The page that asks why a client has, or does not have, a resource, and answers."""

    template = "explain/page.html"
    needs = {"GET": None}

    def get(self, request: HttpRequest) -> HttpResponse:
        """The page with the answer, or with an empty form where nothing was asked. With `format=text`, the answer as
        plain text.
        """
        asked = _asked(request)
        keys = self.principal.sees(state.key for state in self.environments)
        context: dict[str, object] = {"asked": asked, "types": RESOURCE_TYPES, "keys": keys}
        if asked.empty:
            return self.page(context)
        try:
            question = self._question(asked)
            ladder = explain(question=question, client=asked.client, environment_keys=keys)
            who = _who_asks(asked, question, ladder)
        except ControlPlaneError as error:
            return self.page(
                {**context, "error": error}, status=404 if isinstance(error, InputInvalid) else error.status
            )
        text = text_of(asked, question, ladder, who)
        if request.GET.get("format") == "text":
            return HttpResponse(text, content_type="text/plain; charset=utf-8")
        denial = None
        if not who.depends:
            denial = denial_of(ladder, environment_key=asked.environment, principal=self.principal)
        answer = {**_answer(asked, question, ladder, who), **self._ways(asked, denial), "denial": denial, "text": text}
        return self.page({**context, **answer})

    def _question(self, asked: Asked) -> Question:
        """The question, checked and converted. Raises InputInvalid for one that cannot be asked, and NotFound for an
        environment the user may not see.
        """
        kind = by_word.get(asked.word)
        if kind is None:
            raise InputInvalid(f"'{asked.word[:40]}' is not a resource type. Types are: {', '.join(by_word)}.")
        if wrong := name_problem(asked.name):
            raise InputInvalid(f"The name {wrong}.")
        if asked.unclear:
            raise InputInvalid(asked.unclear)
        at = _epoch_or_time(asked.at)
        if asked.at and at is None:
            raise InputInvalid(
                "This is neither the number of a snapshot nor a time such as 2026-01-31T02:10; leave it empty for now."
            )
        self.enter(asked.environment)
        return question_of(environment=asked.environment, kind=kind, name=asked.name, at=at)

    def _ways(self, asked: Asked, denial: Denial | None) -> dict[str, str]:
        """The URLs of the pages to write a rule that allows the name, and to edit the rule that denies it; only what
        the user may do.
        """
        if denial is None or not self.principal.may(Role.ACCESS_EDITOR, asked.environment):
            return {}
        rule = reverse("access-rule", args=[asked.environment])
        # Before all others: behind the rule that refuses it, it would never be asked.
        given = {"effect": "allow", "types": asked.word, "pattern": asked.name, "first": "", "groups": denial.groups}
        if not denial.rule:
            return {"grant": f"{rule}?{urlencode(given, doseq=True)}"}
        grant = urlencode({**given, "instead": denial.rule}, doseq=True)
        return {"grant": f"{rule}?{grant}", "edit_rule": f"{rule}?id={denial.rule}"}


def _epoch_or_time(text: str, zone: tzinfo = UTC) -> int | datetime | None:
    """The epoch or the time that was typed, as clocks in `zone` show it; None where it is neither."""
    if text.isascii() and text.isdigit():
        return int(text) if len(text) <= _MAX_EPOCH_CHARS else None
    return moment_typed(text, timezone.now(), zone)


def _who_asks(asked: Asked, question: Question, ladder: Ladder) -> WhoAsks:
    """The clients that ask for the name, for a question that names no client; nobody, for one that does."""
    if asked.client:
        return WhoAsks()
    found = askers_of(question)
    urls = {each.id: asked.address(c=each.id) for each in found.clients}
    return who_asks(found, question, ladder, asked.code, urls)


def text_of(asked: Asked, question: Question, ladder: Ladder, who: WhoAsks) -> str:
    """The explanation as plain text, to be pasted into a ticket or a chat."""
    answer = "IT DEPENDS ON WHO ASKS" if who.depends else ladder.has.value.upper()
    whom = f"client {asked.client}" if asked.client else "any client" if who.depends else "a client in no group"
    when = f" {_when(question)}" if asked.at else ""
    lines = [
        f"{answer}  {whom} · {asked.word} '{asked.name}' in '{asked.environment}'{when}"
        + (f"  {ladder.code}" if ladder.code else ""),
        f"     {who.sentence or ladder.sentence}",
        *(f"     {_told_line(who)}" for _ in range(bool(who.told))),
        *(f"{_SIGNS[rung.state]:>4} {rung.number} {rung.title:<12} {rung.text}" for rung in ladder.rungs),
        *(f"told: {ladder.told}" for _ in range(bool(ladder.told))),
        *(f"next: {step}" for step in ladder.next),
        f"{settings.PARLEY.public_url}{asked.address()}",
    ]
    return "\n".join(lines) + "\n"


def _when(question: Question) -> str:
    """The snapshot, or the time and the snapshot, that a question is about."""
    at = f"at snapshot {question.at}"
    return f"at {clock(question.time)}, {at}" if question.time is not None else at


def _told_line(who: WhoAsks) -> str:
    names = [shown(line.asker.node_id or line.asker.id) for line in who.named]
    more = [f"and {who.unnamed} more"] if who.unnamed else []
    return f"{who.told} {', '.join((*names, *more))}".rstrip()


def _asked(request: HttpRequest) -> Asked:
    given = request.GET
    code, at = given.get("code", ""), given.get("at", "").strip()[:_MAX_AT_CHARS]
    # An age such as 30m becomes the time that it means, so that links and texts keep it.
    zone = zone_given(given)
    time = _epoch_or_time(at, zone)
    return Asked(
        given.get("e", "").strip()[:63] or DEFAULT_ENVIRONMENT,
        given.get("t", ""),
        given.get("n", ""),
        given.get("c", "").strip()[:_MAX_CLIENT_CHARS],
        iso_text(time) if isinstance(time, datetime) else at,
        code if code in CATALOGUE else "",
        clock_problem(at, zone),
    )


def _answer(asked: Asked, question: Question, ladder: Ladder, who: WhoAsks) -> dict[str, object]:
    epoch = next((link.parts[-1] for link in ladder.links if link.title == "snapshot"), "")
    links = {number: tuple(_links(ladder.links, number)) for number in _TITLES}
    titles = _TITLES if question.time is None else _TITLES | _TITLES_THEN
    steps = tuple(
        RungLine(rung.number, titles[rung.number], _look(rung.state), rung.text, links[rung.number])
        for rung in ladder.rungs
    )
    return {
        "kind": by_word[asked.word],
        "called": _called(asked, ladder),
        "ladder": ladder,
        "verdict": verdict_key(who, ladder),
        "who": who,
        "answer_sentence": Truncator(who.sentence or _sentence(ladder)).chars(_MAX_SENTENCE_CHARS),
        "steps": steps,
        "incidents": tuple(_links(ladder.links, _RUNG_OF["incident"])),
        "ways_back": _ways_back(ladder, links[_RUNG_OF["change"]]),
        "permanent": asked.address(at=epoch) if epoch and not asked.at else "",
        "now": asked.address(at="") if asked.at else "",
        "question": question,
        "text_url": asked.address(format="text"),
        "curl": _curl(asked),
    }


def _sentence(ladder: Ladder) -> str:
    """The sentence below the headline of the answer; empty where the headline says the same."""
    return ladder.sentence.replace(f"{ladder.headline}. ", "", 1) if ladder.headline else ladder.sentence


def _ways_back(ladder: Ladder, links: Iterable[PageLink]) -> tuple[PageLink, ...]:
    """The links, among these, that lead to undoing a change or to restoring a revision; none unless what was written or
    deleted is the reason.
    """
    written = any(rung.state is RungState.FAIL and rung.number == _RUNG_OF["change"] for rung in ladder.rungs)
    if not written and not ladder.refused:
        return ()
    return tuple(link for link in links if link.title in ("change", "history"))


def _called(asked: Asked, ladder: Ladder) -> str:
    """The name of the client for people: its node id, also where the question was asked with its id."""
    known = next((link.parts[-1] for link in ladder.links if link.title == "client"), "")
    return ladder.node_id or asked.client if known == asked.client else asked.client


def _look(state: RungState) -> str:
    match state:
        case RungState.OK:
            return "pass"
        case RungState.FAIL:
            return "fail"
        case RungState.UNKNOWN:
            return "unknown"
        case RungState.SKIPPED:
            return "skipped"


def _links(links: Iterable[Link], number: int) -> Iterable[PageLink]:
    for link in links:
        url = _url(link.parts) if _RUNG_OF.get(link.title) == number else ""
        if url:
            yield PageLink(link.title, url)


def _url(parts: tuple[str, ...]) -> str:
    """The URL of the console's page for the parts of a path of the API; empty where there is none."""
    match parts:
        case ("clients" | "changes" | "incidents" | "rollouts" as what, one):
            return reverse(what.removesuffix("s"), args=[one])
        case ("environments", environment, "snapshots", epoch):
            return reverse("snapshot", args=[environment, int(epoch)])
        case ("environments", environment, "rules", number):
            return f"{reverse('access', args=[environment])}#rule-{number}"
        case ("environments", environment, "resources", word, name, *_):
            return resource_url(environment, word, name)
        case _:
            return ""


def _curl(asked: Asked) -> str:
    """A curl command that asks the API the same question. Quoted for a shell, because a name may hold any character."""
    given = {
        "environment": asked.environment,
        "client": asked.client,
        "type": asked.word,
        "name": asked.name,
        "at": asked.at,
    }
    question = urlencode({key: value for key, value in given.items() if value})
    url = shlex.quote(f"{settings.PARLEY.public_url}/api/v1/explain?{question}")
    return f'curl -H "Authorization: Bearer $XDSCTL_TOKEN" {url}'


urlpatterns = [
    path("x", ExplainPage.as_view(), name="explain"),
]
PLACES = (Place(Section.NOW, 50, "Explain", "help", "explain", of_environment=False),)
