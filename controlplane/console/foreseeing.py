"""Many manifests before they are stored: each beside what is stored, what is wrong with it, and what of it was chosen.

Nothing of a preview is believed when it comes back: what was shown is made again, and compared with what was chosen.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, unquote

from django.http import QueryDict
from django.utils.crypto import salted_hmac

from controlplane.access.selectors import secret_findings
from controlplane.accounts.principal import Principal
from controlplane.builder.deep.unasked import NotJudged, not_judged_of
from controlplane.catalog.guarding import Loss
from controlplane.catalog.manifests import manifest_of, manifest_of_parsed, with_labels
from controlplane.catalog.reading import NOTHING_CHANGED, ManifestRead, ManifestsRead, placed, puts_of
from controlplane.catalog.selectors import resources_named
from controlplane.catalog.services import Terms, change_plan
from controlplane.catalog.values import ChangePlanned, Delete, Edit, EditedResource, Existing, Expectation, Put
from controlplane.common.errors import Conflict, InputInvalid
from controlplane.explain.impact import Edited, Impact
from controlplane.explain.reach import impact_read
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.labels import Labels
from xdscore.resource_types import by_word
from xdscore.schema import ParsedResource, Tree
from xdscore.schema.differences import unified_text

Key = tuple[str, str]

MAX_DIFFS: Final = 100
MAX_ROWS: Final = 400
"""So many resources can be chosen one by one: a form has a thousand fields at most."""
_MAX_SEEN_CHARS: Final = 8_000_000
_NO_TERMS: Final = Terms()
_TURNED_DOWN: Final = "turned_down"
_SAME: Final = "same"
_ORDER: Final = (_TURNED_DOWN, "deleted", "updated", "created", _SAME)


@dataclass(frozen=True, slots=True)
class Seen:
    """A resource as somebody saw it before they chose it. `revision`: the stored one then, 0 for none; `mark`: of the
    content that was to be written.
    """

    word: str
    name: str
    revision: int
    mark: str

    @property
    def key(self) -> Key:
        """The resource's type and name."""
        return self.word, self.name

    @property
    def value(self) -> str:
        """What a form repeats of it, such as `cluster r3 5f… pay`; the name as in a URL, for it may hold anything."""
        return f"{self.word} r{self.revision} {self.mark} {quote(self.name, safe='')}"


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody chose among what they were shown: `taken` as they saw it, and the keys of what they `left`."""

    taken: tuple[Seen, ...]
    left: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Row:
    """A resource that is about to be written. `state`: what would become of it. `parsed`:
    its content; None for a deletion, and where it was turned down. `place`: where it was written. `difference`: from
    what is stored, empty where only secret values, or the owner, differ; None where it is not shown.
    """

    seen: Seen
    state: str
    place: str
    findings: tuple[Finding, ...]
    parsed: ParsedResource | None = None
    difference: str | None = None
    chosen: bool = False

    @property
    def label(self) -> str:
        """The type's word and the resource's name, such as `cluster/pay`."""
        return f"{self.seen.word}/{self.seen.name}"

    @property
    def look(self) -> str:
        """The key in `states.LOOKS` of the badge that shows what would become of it."""
        return f"foreseen_{self.state}"

    @property
    def is_effective(self) -> bool:
        """Whether storing it makes a difference."""
        return self.state not in (_TURNED_DOWN, _SAME)

    @property
    def edit(self) -> Edit:
        """The edit that does it, under the condition that what is stored is still what was seen."""
        revision = self.seen.revision
        expect: Expectation = frozenset({revision}) if revision else Existing.ABSENT
        if self.parsed is None:
            return Delete(by_word[self.seen.word], self.seen.name, expect)
        return Put(self.parsed, expect)


@dataclass(frozen=True, slots=True)
class _Stored:
    """What is stored of a resource."""

    revision: int
    manifest: Tree
    labels: Labels


_NOTHING_STORED: Final = _Stored(0, None, {})


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What storing some manifests would do. `rows`: turned down, deleted, updated, created and the same, in this order;
    `findings`: what is said of none of them alone; `loss`, `impact`: by what is chosen of them.
    """

    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    loss: Loss
    impact: Impact
    not_judged: tuple[NotJudged, ...]

    @property
    def listed(self) -> tuple[Row, ...]:
        """The rows that are shown one by one: those that are not the same as what is stored."""
        return tuple(row for row in self.rows if row.state != _SAME)[:MAX_ROWS]

    @property
    def rest(self) -> tuple[Row, ...]:
        """The rows that would change something and are too many to be shown."""
        shown_now = {row.seen.key for row in self.listed}
        return tuple(row for row in self.rows if row.is_effective and row.seen.key not in shown_now)

    @property
    def rest_value(self) -> str:
        """What a form repeats of `rest`."""
        return _lines(self.rest)

    @property
    def offered_value(self) -> str:
        """What a form repeats of the rows that can be chosen one by one, so that it is known which were left."""
        return _lines(row for row in self.listed if row.is_effective)

    @property
    def same(self) -> tuple[Row, ...]:
        """The rows whose resources are stored as they are written."""
        return tuple(row for row in self.rows if row.state == _SAME)

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """The look of each state that there is, and how many rows have it."""
        found = ((f"foreseen_{state}", sum(row.state == state for row in self.rows)) for state in _ORDER)
        return tuple((state, count) for state, count in found if count)

    @property
    def turned_down(self) -> int:
        """How many manifests were turned down."""
        return sum(row.state == _TURNED_DOWN for row in self.rows)

    @property
    def chosen(self) -> tuple[Row, ...]:
        """The rows that are chosen."""
        return tuple(row for row in self.rows if row.chosen)

    @property
    def effective(self) -> tuple[Row, ...]:
        """The rows that would change something."""
        return tuple(row for row in self.rows if row.is_effective)


def foreseen_of(
    read: ManifestsRead,
    *,
    environment_key: str,
    places: Sequence[str],
    terms: Terms = _NO_TERMS,
    left: Collection[Key],
    actor: Principal,
) -> Foreseen:
    """What storing these manifests would do. `places`: where each of them was written. `left`: which of the resources
    are not chosen. Nothing is taken out by `terms` while a manifest is turned down, which may be of what would be.
    Raises Forbidden, Conflict, and InputInvalid about all of them together.
    """
    sound = ManifestsRead(tuple(each for each in read.each if each.parsed is not None))
    if read.refused:
        terms = Terms(terms.owner)
    planned = _planned(environment_key, sound, puts_of(sound), terms, actor)
    rows = _rows(read, places, planned, environment_key, left)
    now = planned
    if any(row.is_effective and not row.chosen for row in rows):
        edits = [row.edit for row in rows if row.chosen]
        now = change_plan(environment_key=environment_key, edits=edits, asker=actor, terms=Terms(terms.owner))
    edited = [Edited(*row.seen.key, row.parsed is None) for row in rows if row.chosen]
    keys = {row.seen.key for row in rows}
    general = [each for each in now.findings if (each.resource_type, each.resource_name) not in keys]
    return Foreseen(
        tuple(rows),
        tuple(dict.fromkeys(general)),
        now.loss,
        impact_read(environment_key=environment_key, edits=edited),
        not_judged_of(now, sound.parsed),
    )


def _rows(
    read: ManifestsRead, places: Sequence[str], planned: ChangePlanned, environment_key: str, left: Collection[Key]
) -> list[Row]:
    """A row for each manifest, and for each resource that is taken out."""
    edited = {(each.type, each.name): each for each in planned.edits}
    marked = {each.key for each in planned.marked}
    contents = _contents(environment_key, planned)
    said = _said(planned, edited, environment_key)
    rows = [
        _row(each, place, edited, marked, contents, said, left) for each, place in zip(read.each, places, strict=True)
    ]
    for key, edit in edited.items():
        if edit.action == "deleted":
            seen, text = Seen(*key, edit.revision - 1, "-"), _difference(key, contents, None)
            rows.append(Row(seen, "deleted", "", said.get(key, ()), None, text, key not in left))
    return sorted(rows, key=lambda row: (_ORDER.index(row.state), row.seen.key))


def choice_posted(given: QueryDict) -> Choice | None:
    """What the form of a preview says was chosen; None where it comes from no preview. Raises InputInvalid for what no
    page of ours wrote.
    """
    if given.get("looked") != "1":
        return None
    picked = tuple(map(_seen, given.getlist("pick")))
    rest, offered = (_seen_in(given.get(field, "")) for field in ("rest", "offered"))
    return Choice((*picked, *rest), frozenset(each.key for each in offered) - {each.key for each in picked})


def chosen_edits(foreseen: Foreseen, choice: Choice) -> tuple[Edit, ...]:
    """The edits for what was chosen. Raises Conflict, with a finding for each, where something is not as it was seen,
    or was not there to be seen; InputInvalid where nothing was chosen.
    """
    seen = choice.taken
    if not seen:
        raise InputInvalid(f"Nothing is chosen: tick what is to be stored. {NOTHING_CHANGED}")
    rows = {row.seen.key: row for row in foreseen.effective}
    same = {row.seen.key for row in foreseen.same}
    moved = [problem for each in seen if (problem := _moved(each, rows.get(each.key), is_same=each.key in same))]
    known = {each.key for each in seen} | choice.left
    moved += [_problem(key, "would change, too, and was not there when you looked") for key in rows if key not in known]
    if moved:
        noun = "resource is" if len(moved) == 1 else "resources are"
        raise Conflict(
            f"{len(moved)} {noun} not as you saw it. Look again: below is how things stand now. {NOTHING_CHANGED}",
            findings=tuple(moved),
        )
    return tuple(rows[each.key].edit for each in seen)


def _moved(seen: Seen, row: Row | None, *, is_same: bool) -> Finding | None:
    """What moved since somebody saw it; None where nothing did."""
    if row is not None and row.seen == seen:
        return None
    if is_same:
        said = "is stored already as it is written here"
    elif row is None:
        said = "is not among what would change any more"
    elif row.seen.revision != seen.revision:
        before = f"at r{seen.revision}" if seen.revision else "not there"
        now = f"at r{row.seen.revision}" if row.seen.revision else "not there"
        said = f"was {before} when you looked, and is {now}"
    else:
        said = "would be written otherwise than you saw: the text is another"
    return _problem(seen.key, said)


def _problem(key: Key, said: str) -> Finding:
    return Finding(Conflict.code, Severity.ERROR, f"The {key[0]} '{shown(key[1])}' {said}.").about(*key)


def _lines(rows: Iterable[Row]) -> str:
    return "\n".join(row.seen.value for row in rows)


def _seen_in(text: str) -> tuple[Seen, ...]:
    if len(text) > _MAX_SEEN_CHARS:
        raise InputInvalid(f"The form names more resources than can be chosen at once. {NOTHING_CHANGED}")
    return tuple(map(_seen, filter(None, (line.strip("\r") for line in text.split("\n")))))


def _seen(text: str) -> Seen:
    word, _, rest = text.partition(" ")
    revision, _, rest = rest.partition(" ")
    mark, _, name = rest.partition(" ")
    number = revision.removeprefix("r")
    if word not in by_word or not (number.isascii() and number.isdigit() and len(number) < 10) or not name:
        raise InputInvalid(f"The form names something that is no resource. Check again. {NOTHING_CHANGED}")
    return Seen(word, unquote(name), int(number), mark)


def _planned(
    environment_key: str, sound: ManifestsRead, edits: Sequence[Put], terms: Terms, actor: Principal
) -> ChangePlanned:
    with placed([each.manifest for each in sound.each], sound):
        return change_plan(environment_key=environment_key, edits=edits, asker=actor, terms=terms)


def _said(
    planned: ChangePlanned, edited: Mapping[Key, EditedResource], environment_key: str
) -> Mapping[Key, tuple[Finding, ...]]:
    """What the plan says of each resource."""
    closed = secret_findings(environment_key=environment_key, edits=planned.edits)
    found: dict[Key, list[Finding]] = {key: [] for key in edited}
    for finding in (*planned.findings, *closed):
        found.setdefault((finding.resource_type, finding.resource_name), []).append(finding)
    return {key: tuple(some) for key, some in found.items()}


def _contents(environment_key: str, planned: ChangePlanned) -> Mapping[Key, _Stored]:
    """What is stored of the first resources that would change."""
    keys = [(each.type, each.name) for each in planned.edits[:MAX_DIFFS]]
    keys += [each.key for each in planned.marked]
    found = resources_named(environment_key=environment_key, keys=keys)
    stored = {
        key: _Stored(each.revision, with_labels(manifest_of(each), each.labels), each.labels) for key, each in found
    }
    return {key: stored.get(key, _NOTHING_STORED) for key in keys}


def _difference(key: Key, contents: Mapping[Key, _Stored], after: Tree) -> str | None:
    """The difference of a resource from what is stored; None where it is one of those that are not shown."""
    return unified_text(f"{key[0]}/{key[1]}", contents[key].manifest, after) if key in contents else None


def _row(
    each: ManifestRead,
    place: str,
    edited: Mapping[Key, EditedResource],
    marked: set[Key],
    contents: Mapping[Key, _Stored],
    said: Mapping[Key, tuple[Finding, ...]],
    left: Collection[Key],
) -> Row:
    key = (each.word, each.name)
    if each.parsed is None:
        return Row(Seen(*key, 0, ""), _TURNED_DOWN, place, each.findings)
    findings = tuple(dict.fromkeys((*each.findings, *said.get(key, ()))))
    if key not in edited and key not in marked:
        return Row(Seen(*key, 0, ""), _SAME, place, findings, each.parsed)
    edit = edited.get(key)
    state = edit.action if edit is not None else "updated"  # only its labels or its owner would be others
    revision = edit.revision - 1 if edit is not None else contents[key].revision
    stored = contents.get(key, _NOTHING_STORED)
    labels = stored.labels if each.parsed.labels is None else each.parsed.labels
    text = _difference(key, contents, with_labels(manifest_of_parsed(each.parsed), labels))
    seen = Seen(*key, revision if state != "created" else 0, _mark(each.parsed))
    return Row(seen, state, place, findings, each.parsed, text, key not in left)


def _mark(parsed: ParsedResource) -> str:
    """A mark of all that is written of a resource, under a key: content may be a secret that somebody could guess."""
    labels = sorted(parsed.labels.items()) if parsed.labels is not None else None
    value = parsed.any_bytes + f"\n{parsed.ttl_ms}\n{labels}".encode()
    return salted_hmac("controlplane.console.foreseeing", value, algorithm="sha256").hexdigest()[:20]
