"""Manifests that somebody sends, over the API or from a page: texts to edits, with every finding at once.

A secret reads as `<kept:…>` (`catalog.manifests`), and `<kept:…>` sent back means what is stored (decisions U12).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeGuard

from django.conf import settings
from django.utils import timezone

from controlplane.catalog.lasting import lasting_keys
from controlplane.catalog.selectors import environment_get, resource_get
from controlplane.catalog.values import Existing, Expectation, Put
from controlplane.common.errors import InputInvalid, InputTooLarge, NotFound
from xdscore.findings import Finding, has_errors
from xdscore.limits import Limits
from xdscore.names import name_problem
from xdscore.resource_types import by_word
from xdscore.schema import (
    Expected,
    Manifest,
    ManifestLimits,
    ParsedResource,
    Refused,
    manifests_of,
    parse,
    restore_kept,
)
from xdscore.schema.codes import KEPT_UNKNOWN, NOTHING_FOUND
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy, graded
from xdscore.schema.convert import ResourceLimits
from xdscore.schema.leniency import strictly
from xdscore.schema.positions import path_of
from xdscore.schema.text import Document

NOTHING_CHANGED: Final = "Nothing was changed."

Kept = Mapping[tuple[str, str], bytes]
"""Serialised Any messages by type and name, secrets included."""
NOTHING_KEPT: Final[Kept] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ManifestRead:
    """What came of reading one manifest: its resource, None where it was refused, and all findings. `word`, `name`: the
    resource's type and name as far as they could be read.
    """

    manifest: Manifest
    word: str
    name: str
    parsed: ParsedResource | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ManifestsRead:
    """What came of reading manifests, of `each` in their order."""

    each: tuple[ManifestRead, ...]

    @property
    def parsed(self) -> tuple[ParsedResource, ...]:
        """The resources without errors."""
        return tuple(each.parsed for each in self.each if each.parsed is not None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings about all manifests."""
        return tuple(finding for each in self.each for finding in each.findings)

    @property
    def refused(self) -> int:
        """How many manifests were refused."""
        return sum(each.parsed is None for each in self.each)


def manifest_limits() -> ManifestLimits:
    """The limits that this installation sets for the text of manifests."""
    limits: Limits = settings.PARLEY.limits
    return ManifestLimits(max_bytes=limits.apply_bytes, max_depth=limits.json_depth, max_resources=limits.apply_items)


def resource_limits() -> ResourceLimits:
    """The limits that this installation sets for each resource."""
    limits: Limits = settings.PARLEY.limits
    return ResourceLimits(
        max_bytes=limits.resource_bytes,
        max_message_depth=limits.message_depth,
        max_any_depth=limits.any_depth,
        min_ttl_ms=limits.ttl_min_ms,
        max_ttl_ms=limits.ttl_max_s * 1000,
    )


def manifests_in(documents: Sequence[Document]) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """The manifests in these documents, and findings about what was left out. Raises InputInvalid for a document that
    holds no manifest.
    """
    several = len(documents) > 1
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    for document in documents:
        if several and document.tree is None:
            continue  # what a "---" at the end of a file makes
        found, said = manifests_of(document, limits=manifest_limits())
        if several:
            # Pointers into a body of several documents begin with the document's number, as `read_manifests` has it.
            found = tuple(replace(each, path=(document.number, *each.path), skip=1) for each in found)
            said = tuple(replace(each, pointer=f"/{document.number}{each.pointer}") for each in said)
        manifests += found
        findings += said
    if not manifests and not findings:
        findings.append(NOTHING_FOUND.finding(""))
    return _sound(manifests, findings)


def manifests_at(document: Document, pointer: str) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """The manifests in the list at `pointer` of a document, and findings about what was left out; the list may be
    empty. Raises InputInvalid for entries that are no manifest.
    """
    found, said = manifests_of(document, pointer, manifest_limits())
    return _sound(list(found), [each for each in said if each.code != NOTHING_FOUND.code])


def parsed_all(
    manifests: Sequence[Manifest],
    *,
    environment_key: str = "",
    expected: Expected | None = None,
    kept: Kept = NOTHING_KEPT,
    strict: bool = False,
) -> ManifestsRead:
    """Parse these manifests. `environment_key`, unless empty: stored secrets that a manifest asks to keep are filled in
    from that environment, and its policy grades findings about content. `expected`: the type and name that the manifest
    must have. `kept`: contents from which secrets are filled in first, by type and name. `strict`: what is not in its
    canonical form is refused, where it would be warned of.
    """
    every: list[ManifestRead] = []
    policy: ContentPolicy | None = None
    for manifest in manifests:
        result = _parsed(manifest, environment_key, expected or Expected(), kept, policy or DEFAULT_POLICY)
        if result.findings and environment_key and policy is None:
            policy = environment_get(key=environment_key).policy.content
            if isinstance(result, Refused) and policy != DEFAULT_POLICY:
                result = _parsed(manifest, environment_key, expected or Expected(), kept, policy)
        said = strictly(result.findings) if strict else result.findings
        said = graded(said, policy) if policy is not None else said
        word = result.type.word if isinstance(result, ParsedResource) else result.type_word
        sound = result if isinstance(result, ParsedResource) and not has_errors(said) else None
        every.append(ManifestRead(manifest, word, result.name, sound, said))
    return ManifestsRead(tuple(every))


def puts_of(read: ManifestsRead, *, expect: Expectation = Existing.ANY) -> tuple[Put, ...]:
    """The edits that store these resources, each under the condition `expect`. Raises InputInvalid with every finding
    when any manifest was refused.
    """
    if read.refused:
        total = read.refused + len(read.parsed)
        noun = "manifest was" if total == 1 else "manifests were"
        raise InputInvalid(
            f"{read.refused} of {total} {noun} refused. {NOTHING_CHANGED}",
            findings=read.findings,
        )
    return tuple(Put(each, expect) for each in read.parsed)


@contextmanager
def placed(manifests: Sequence[Manifest], read: ManifestsRead) -> Iterator[None]:
    """A context in whose block these manifests are stored: findings of an InputInvalid that is raised there get the
    line and column in the manifests' text.

    `read` came of these manifests, all of which are in it. The catalogue, which raises, knows pointers alone.
    """
    try:
        yield
    except InputInvalid as error:
        sources = {(each.type.word, each.name): source for each, source in zip(read.parsed, manifests, strict=True)}
        error.findings = tuple(_placed(each, sources) for each in error.findings)
        raise


def _placed(finding: Finding, sources: Mapping[tuple[str, str], Manifest]) -> Finding:
    source = sources.get((finding.resource_type, finding.resource_name))
    if source is None or finding.line or not finding.pointer.startswith(source.pointer + "/"):
        return finding
    return source.located(finding, path_of(finding.pointer.removeprefix(source.pointer), source.tree))


def _parsed(
    manifest: Manifest, environment_key: str, expected: Expected, kept: Kept, policy: ContentPolicy
) -> ParsedResource | Refused:
    limits, now = resource_limits(), timezone.now()
    result = parse(manifest, expected, limits, now=now, policy=policy)
    if not environment_key or not _asks_to_keep(result):
        return result
    own = kept.get((result.type_word, result.name))
    if own is not None:
        manifest = restore_kept(manifest, own, lasting_keys().keyed_hash)
        result = parse(manifest, expected, limits, now=now, policy=policy)
        if not _asks_to_keep(result):
            return result
    try:
        stored = resource_get(environment_key=environment_key, kind=by_word[result.type_word], name=result.name)
    except NotFound:
        return result
    whole = restore_kept(manifest, stored.any_bytes, lasting_keys().keyed_hash)
    return parse(whole, expected, limits, now=now, policy=policy)


def _asks_to_keep(result: ParsedResource | Refused) -> TypeGuard[Refused]:
    """Whether a manifest was refused because it asks to keep secrets, of a resource that may exist."""
    return (
        isinstance(result, Refused)
        and any(finding.code == KEPT_UNKNOWN.code for finding in result.findings)
        and not name_problem(result.name)
        and result.type_word in by_word
    )


def _sound(manifests: list[Manifest], findings: list[Finding]) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    if has_errors(tuple(findings)):
        raise InputInvalid(
            f"The body holds something that is not a resource. {NOTHING_CHANGED}", findings=tuple(findings)
        )
    limit = manifest_limits().max_resources
    if len(manifests) > limit:
        raise InputTooLarge(
            f"The body holds {len(manifests):,} resources; at most {limit:,} are allowed. {NOTHING_CHANGED}"
        )
    return tuple(manifests), tuple(findings)
