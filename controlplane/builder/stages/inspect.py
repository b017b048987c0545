"""Finds, among resources that Envoy has not judged yet, those that it refuses. Pure: who judges comes from the caller.

Envoy takes a configuration as a whole and tells the first thing that it dislikes, so the resource at fault is searched
for: resources stand in the order in which they were written, and the shortest beginning of that row that is refused
ends in it. So where two resources cannot stand together the later one gives way, as with claims (`conflicts`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from xdscore.snapshot import EntryKey


class EnvoyVerdict(Enum):
    """How a question to Envoy ended: accepted, refused, or without a verdict."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNDECIDED = "undecided"  # no Envoy, no time, or it did not end well: never a reason to hold anything back


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of Envoy about a configuration. `text`: its complaint, or why there is no verdict; empty where it
    accepts.
    """

    verdict: EnvoyVerdict
    text: str = ""


ACCEPTED = Answer(EnvoyVerdict.ACCEPTED)
Judge = Callable[[Sequence[EntryKey]], Answer]
"""A function that asks Envoy about a configuration that holds these resources and no others."""


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search for the resources that Envoy refuses.

    `refused`: the culprits, with Envoy's words.
    `doubted`: resources that Envoy complains of and that are served all the same, with its words.
    `undecided`: why the search did not come to its end. Empty: it did, and what is in neither mapping is accepted.
    """

    refused: Mapping[EntryKey, str]
    doubted: Mapping[EntryKey, str]
    undecided: str = ""


def find_refused(context: Sequence[EntryKey], suspects: Sequence[EntryKey], judge: Judge) -> Search:
    """Search for the `suspects` that Envoy refuses, until it accepts those that are left. `context`: resources that are
    shown with them and never at fault, because a client acknowledged them or Envoy accepted them before. `judge` asks
    Envoy.
    """
    row = [*context, *suspects]
    blamable = frozenset(suspects)
    refused: dict[EntryKey, str] = {}
    doubted: dict[EntryKey, str] = {}
    sound = 0  # so many from the beginning are known to be accepted together
    answer = judge(row)
    if answer.verdict is EnvoyVerdict.REFUSED and (base := judge(())).verdict is not EnvoyVerdict.ACCEPTED:
        return Search({}, {}, base.text or "it refuses an empty configuration")
    while answer.verdict is EnvoyVerdict.REFUSED:
        low, high = sound, len(row)
        while high - low > 1:
            middle = (low + high) // 2
            tried = judge(row[:middle])
            if tried.verdict is EnvoyVerdict.UNDECIDED:
                return Search(refused, doubted, tried.text)
            if tried.verdict is EnvoyVerdict.REFUSED:
                high, answer = middle, tried
            else:
                low = middle
        culprit = row.pop(high - 1)
        sound = high - 1
        certain = culprit in blamable and not about_unknown_cluster(answer.text)
        (refused if certain else doubted)[culprit] = answer.text
        answer = judge(row)
    return Search(refused, doubted, answer.text)


_CLUSTER_IS_ELSEWHERE = ("unknown", "not found", "no such", "does not exist", "not static", "statically defined")


def about_unknown_cluster(text: str) -> bool:
    """Whether Envoy's complaint `text` is about an unknown cluster. That says little: a proxy has clusters of its own
    in its bootstrap, and a cluster that the catalogue lacks is found without Envoy (XDS2002).
    """
    said = text.casefold()
    return "cluster" in said and any(words in said for words in _CLUSTER_IS_ELSEWHERE)
