"""Keeps the types that cannot be built as they were published before, so that the others advance (reliability F29).

Called by `builder.services` when a build fails. What makes it fail is a fault of this program, which met something in
one type that it cannot work with; architecture.md law 1 holds for that, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from controlplane.builder.stages.fallback import Cause, HeldBack, Resolution, resolve
from controlplane.builder.stages.wording import findings_of_held, other_findings
from controlplane.catalog.heads import Head
from xdscore.snapshot import Entry, EntryKey, RemovedName, Served, WithheldName

REASON = "its type could not be built"

Heads = Mapping[EntryKey, Head]
Entries = Mapping[EntryKey, Entry]


@dataclass(frozen=True, slots=True)
class Isolation:
    """The types that cannot be built, to be kept as they are published while the others are built.

    `failed`: those types, each with the name of its error; empty: all can be built.
    `written`: the heads of all names.
    `published`: what is served of each name now, on the stable side.
    `candidate`: in which entries the candidate side of the open rollout differs from that now.
    """

    failed: Mapping[str, str]
    written: Heads
    published: Entries
    candidate: Mapping[EntryKey, Entry | None] = field(default_factory=dict)

    @property
    def heads(self) -> Heads:
        """The heads to build from. For a type that fails, each name has the content that is published now, without
        references and without claims.
        """
        heads = {key: head for key, head in self.written.items() if key[0] not in self.failed}
        for key in self._keys():
            before, head = self.published.get(key), self.written.get(key, Head(key, None))
            content = before.content if isinstance(before, Served) else head.content
            heads[key] = Head(key, content, revision=head.revision)
        return heads

    def keep(self, resolution: Resolution) -> Resolution:
        """The resolution with every name of a failing type as it is published now. Of those, each whose head is not
        served is held back.
        """
        if not self.failed:
            return resolution
        entries, held = dict(resolution.entries), list(resolution.held)
        held = [each for each in held if each.key[0] not in self.failed]
        for key in self._keys():
            head = self.written.get(key)
            entry = self._kept(key)
            entries[key] = entry
            shown = entry.content if isinstance(entry, Served) else None
            wanted = head.content if head is not None else None
            if wanted != shown:
                held.append(HeldBack(key, Cause.TYPE, REASON, served=shown is not None))
        # Who names what is not known while a type is out, so nothing is called unused.
        references = replace(resolution.references, unused=(), unused_count=0)
        return replace(
            resolution,
            entries=entries,
            held=tuple(sorted(held, key=lambda each: each.key)),
            references=references,
            broken=self.failed,
        )

    def keep_diff(self, differing: Mapping[EntryKey, Entry | None]) -> Mapping[EntryKey, Entry | None]:
        """In what the candidate side differs: `differing`, and in every name of a failing type what is published."""
        kept = {key: entry for key, entry in self.candidate.items() if key[0] in self.failed}
        return {**differing, **kept}

    def _keys(self) -> list[EntryKey]:
        return [key for key in self.written.keys() | self.published.keys() if key[0] in self.failed]

    def _kept(self, key: EntryKey) -> Entry:
        match self.published.get(key):
            case Served(content=content, proven=proven):
                return Served(content, proven)  # its access rules are looked up anew
            case WithheldName() as before:
                return before
        # Written since: it exists, so it is never called missing (reliability T6).
        head = self.written.get(key)
        return WithheldName(REASON) if head is not None and head.content is not None else RemovedName()


NOTHING_ISOLATED = Isolation({}, {}, {})


def failing_types(heads: Heads) -> Mapping[str, str]:
    """The types that fail even when they are built alone, each with the name of its error.

    Empty where none fails alone, and also where all do: then nothing would be left to build.
    """
    apart: dict[str, dict[EntryKey, Head]] = {}
    for key, head in heads.items():
        apart.setdefault(key[0], {})[key] = head
    failed = {word: error for word, its_heads in sorted(apart.items()) if (error := _error_of(its_heads))}
    return failed if len(failed) < len(apart) else {}


def _error_of(heads: Heads) -> str:
    try:
        resolution = resolve(heads)
        for held in resolution.held:
            findings_of_held(held, resolution, "", {})
        list(other_findings(resolution, "", {}))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other types go on
        return type(error).__name__
    return ""
