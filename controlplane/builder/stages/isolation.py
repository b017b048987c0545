"""Keeps the types that cannot be built as they were published before, so that the others advance (reliability F29).

Called by `builder.services` when a build fails. What makes it fail is a fault of this program, which met something in
one type that it cannot work with; architecture.md law 1 holds for that, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from controlplane.builder.stages.fallback import Cause, HeldBack, Resolution, resolve
from controlplane.builder.stages.wording import findings_of_held, other_findings
from controlplane.catalog.heads import Head
from xdscore.snapshot import Entry, EntryKey, RemovedName, Served, WithheldName

REASON = "its type could not be built"

Heads = Mapping[EntryKey, Head]
Entries = Mapping[EntryKey, Entry]


@dataclass(frozen=True, slots=True)
class Isolation:
    """A build without the types that fail. `failed`: the name of the error of each; empty: nothing is isolated."""

    failed: Mapping[str, str]
    written: Heads
    published: Entries

    @property
    def heads(self) -> Heads:
        """The heads to build from. Of a type that fails, each name keeps the content that is published, without its
        references and claims.
        """
        heads = {key: head for key, head in self.written.items() if key[0] not in self.failed}
        for key in self._keys():
            before, head = self.published.get(key), self.written.get(key, Head(key, None))
            content = before.content if isinstance(before, Served) else head.content
            heads[key] = Head(key, content, revision=head.revision)
        return heads

    def keep(self, resolution: Resolution) -> Resolution:
        """The resolution of `heads`, with what is published of the failing types kept as it is; a name that is not
        served as it was written is held back.
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
    """The types that cannot be judged even by themselves, with the name of the error of each.

    Empty where no type is at fault, and where every type is: then there is nothing to go on with.
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
