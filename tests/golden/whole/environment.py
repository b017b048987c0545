"""An environment of a case: what is written goes through the builder's own stages, and comes out as snapshots."""

from collections.abc import Mapping
from typing import Any

from adsserver.engine.publication import Publication
from adsserver.store.snapshot_reading import _readable
from controlplane.builder.stages.assemble import EMPTY, assemble
from controlplane.builder.stages.fallback import Resolution, resolve
from controlplane.builder.stages.isolation import Isolation
from controlplane.builder.stages.permit import NOTHING, permit
from controlplane.builder.stages.wording import findings_of_held, other_findings
from controlplane.catalog.heads import Head
from controlplane.catalog.lasting import LastingKeys
from controlplane.catalog.references import needs_of
from controlplane.catalog.withholding import Withholding
from tests.golden.whole.case import Access, Written
from xdscore.access import AccessTable, Effect, Rule
from xdscore.chunks import decode_access, decode_chunk, encode_access
from xdscore.client_groups import ClientGroup, Trust
from xdscore.environment_choice import ClientFacts, Selector
from xdscore.findings import Severity
from xdscore.schema import ParsedResource
from xdscore.snapshot import (
    Content,
    Entry,
    EntryKey,
    RemovedName,
    Served,
    UnreadableName,
    WithheldName,
    client_mark,
    content_version,
    snapshot_from_entries,
)

# Of secrets the address is keyed; these keys are nobody's.
_KEYS = LastingKeys(b"address of a case", b"kept of a case")


class Contents:
    """The bytes of every content of a case, by address: what ADS has in its memory."""

    def __init__(self) -> None:
        self._bytes: dict[bytes, bytes] = {}

    def keep(self, address: bytes, data: bytes) -> None:
        self._bytes[address] = data

    def any_bytes(self, content: Content) -> bytes:
        return self._bytes[content.blob]


class Environment:
    """What one environment has, publication by publication."""

    def __init__(self, key: str, contents: Contents) -> None:
        self.key = key
        self.publication: Publication | None = None
        self._contents = contents
        self._revision = 0
        self._heads: dict[EntryKey, tuple[int, ParsedResource | None]] = {}
        self._proven: dict[EntryKey, ParsedResource] = {}
        self._acknowledged: set[tuple[EntryKey, bytes]] = set()
        self._quarantines: dict[EntryKey, tuple[ParsedResource, Mapping[str, Any]]] = {}
        self._unreadable: tuple[EntryKey, ...] = ()
        self._unbuilt: Mapping[str, str] = {}
        self._access = _table(Access())
        self._permitted = NOTHING
        self._assembly = EMPTY
        self._entries: Mapping[EntryKey, Entry | UnreadableName] = {}

    def write(self, written: Written) -> dict[str, object]:
        """Take a change in, build and publish; the snapshot in words."""
        for parsed in written.earlier:
            self._put(parsed)
            self._prove((parsed.type.word, parsed.name))
        for parsed in written.put:
            self._put(parsed)
        for key in written.delete:
            self._revision += 1
            self._heads[key] = self._revision, None
            self._quarantines.pop(key, None)
        for key in written.acknowledged:
            self._prove(key)
        for key, how in written.quarantined.items():
            self._quarantines[key] = self._head(key), how
        for key in written.released:
            del self._quarantines[key]
        if written.unreadable is not None:
            self._unreadable = written.unreadable
        if written.unbuilt is not None:
            self._unbuilt = written.unbuilt
        if written.access is not None:
            self._access = _table(written.access)
        return self._publish()

    def _put(self, parsed: ParsedResource) -> None:
        key = parsed.type.word, parsed.name
        self._revision += 1
        self._heads[key] = self._revision, parsed
        self._quarantines.pop(key, None)
        if (key, parsed.any_bytes) in self._acknowledged:
            self._proven[key] = parsed

    def _prove(self, key: EntryKey) -> None:
        self._proven[key] = self._head(key)
        self._acknowledged.add((key, self._proven[key].any_bytes))

    def _head(self, key: EntryKey) -> ParsedResource:
        head = self._heads[key][1]
        assert head is not None, f"{key} is deleted"
        return head

    def _publish(self) -> dict[str, object]:
        heads = {key: self._head_of(key) for key in sorted(self._heads)}
        published = {key: entry for key, entry in self._entries.items() if not isinstance(entry, UnreadableName)}
        isolation = Isolation(self._unbuilt, heads, published)
        resolution = isolation.keep(resolve(isolation.heads))
        self._permitted = permit(resolution.entries, self._access, self._permitted)
        self._assembly = assemble(self._permitted.entries, self._assembly)
        return self._load(resolution)

    def _load(self, resolution: Resolution) -> dict[str, object]:
        """What ADS makes of what the builder wrote."""
        current = self.publication.snapshot if self.publication is not None else None
        access = decode_access(encode_access(self._access))
        stored = dict(entry for part in self._assembly.parts for entry in decode_chunk(part))
        served = (entry for key, entry in stored.items() if key in self._unreadable and isinstance(entry, Served))
        unreadable = {entry.content.blob: "its seal cannot be opened" for entry in served}
        entries = dict(_readable(key, entry, current, unreadable) for key, entry in stored.items())
        if current is None or (entries, access) != (self._entries, current.access):
            epoch = current.epoch + 1 if current is not None else 1
            snapshot = snapshot_from_entries(
                environment=self.key,
                lineage="one",
                epoch=epoch,
                access=current.access if current is not None and current.access == access else access,
                entries=entries.items(),
            )
            self.publication = Publication(snapshot, self.publication)
        self._entries = entries
        assert self.publication is not None
        return {
            "environment": f"{self.key}, epoch {self.publication.snapshot.epoch}",
            "entries": {" ".join(key): _entry_text(entries[key]) for key in sorted(entries)},
            "findings": _finding_lines(resolution, self.key),
        }

    def _head_of(self, key: EntryKey) -> Head:
        revision, parsed = self._heads[key]
        proven = self._proven.get(key)
        quarantined, how = self._quarantines.get(key, (None, {}))
        content = self._content(parsed)
        return Head(
            key=key,
            content=content,
            quarantined=parsed is not None and parsed == quarantined,
            proven=self._content(proven),
            proven_quarantined=proven is not None and proven == quarantined,
            revision=revision,
            references=tuple(sorted(needs_of(parsed))) if parsed is not None else (),
            claims=parsed.claims if parsed is not None else (),
            proven_claims=proven.claims if proven is not None else (),
            withholding=Withholding(
                {kind: tuple(_mark(each) for each in who) for kind, who in how.get("refused_by", {}).items()},
                {},
                acknowledged=(key, parsed.any_bytes if parsed is not None else b"") in self._acknowledged,
                probed=how.get("automatic", False),
            )
            if quarantined is not None
            else None,
        )

    def _content(self, parsed: ParsedResource | None) -> Content | None:
        if parsed is None:
            return None
        address = parsed.content_hash
        if parsed.type.secret:
            address = _KEYS.secret_address(
                environment=self.key, word=parsed.type.word, name=parsed.name, plaintext=parsed.any_bytes
            )
        self._contents.keep(address, parsed.any_bytes)
        return Content(address, content_version(address), len(parsed.any_bytes), parsed.eds_name)


def _mark(identity: str) -> str:
    return client_mark(ClientFacts(identity))


def _table(access: Access) -> AccessTable:
    groups = (
        ClientGroup(
            group["key"],
            tuple(Selector(**matcher) for matcher in group["matchers"]),
            Trust(group.get("trust", "declared")),
        )
        for group in access.groups
    )
    rules = (
        Rule(
            number,
            Effect(rule["effect"]),
            rule.get("pattern", "*"),
            frozenset(rule.get("client_groups", ())),
            frozenset(rule.get("types", ())),
            rule.get("message", ""),
        )
        for number, rule in enumerate(access.rules, start=1)
    )
    return AccessTable(Effect(access.default), tuple(groups), tuple(rules))


def _entry_text(entry: Entry | UnreadableName) -> str:
    match entry:
        case Served(content=content, proven=proven, rules=rules):
            acknowledged = "itself" if proven == content else proven.version if proven is not None else "nothing"
            by_rules = f", rules {list(rules)}" if rules is not None else ""
            return f"served {content.version}, acknowledged {acknowledged}{by_rules}"
        case WithheldName(reason=reason, content=content, kinds=kinds):
            what = f" {content.version}" if content is not None else ""
            whom = f" from {', '.join(kinds)}" if kinds else ""
            return f"withheld{what}{whom}: {reason}"
        case UnreadableName(reason=reason):
            return f"not readable: {reason}"
        case RemovedName():
            return "removed"


def _finding_lines(resolution: Resolution, environment: str) -> list[str]:
    held = (each for held in resolution.held for each in findings_of_held(held, resolution, environment, {}))
    found = (*held, *other_findings(resolution, environment, {}))
    # That nothing refers to a resource is noted of most resources of a case, and is no matter of it.
    return [
        f"{each.resource_type} {each.resource_name}: {each.code} {each.detail}"
        for each in found
        if each.severity is not Severity.NOTE
    ]
