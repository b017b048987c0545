"""One manifest to one resource, or to everything that is wrong with it.

The order: which type (`@type`, with or without the Resource wrapper) -> `convert` (shape, all errors) -> name ->
`rules` (field rules, all errors) -> `content` (notices, dangers, certificates) -> canonical bytes -> `references`.
Every step goes on where it can, so that one answer holds all findings. Pure; called by catalog.services, /validate, the
editor, the builder and `xdsctl validate --offline`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.message import DecodeError, EncodeError

from xdscore.findings import Finding, Severity, has_errors
from xdscore.labels import LABELS_KEY, Labels
from xdscore.names import canonical, name_problem
from xdscore.resource_types import RESOURCE_TYPES, TYPE_URL_PREFIX, ResourceType, by_message, by_url, by_word
from xdscore.schema.certificates import Expiry
from xdscore.schema.claims import claims_of
from xdscore.schema.codes import (
    CONVERSION_FAILED,
    MORE_UNUSED,
    NAME_DIFFERS,
    NAME_MISSING,
    NAME_REFUSED,
    TOO_DEEP,
    TOO_LARGE,
    TOO_MANY_FINDINGS,
    TYPE_DIFFERS,
    TYPE_MISSING,
    TYPE_NOT_SERVED,
    TYPE_UNKNOWN,
    TYPE_URL_FORM,
    WRONG_TYPE,
)
from xdscore.schema.content import content_of
from xdscore.schema.content_policy import DEFAULT_POLICY, ContentPolicy
from xdscore.schema.convert import MAX_FINDINGS, Conversion, Depth, ResourceLimits
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.label_trees import labels_in
from xdscore.schema.manifest import Manifest
from xdscore.schema.never_used import NEVER_USED
from xdscore.schema.positions import Path, pointer_of
from xdscore.schema.references import Reference, eds_name_of, named_by
from xdscore.schema.relations import Said
from xdscore.schema.rules import violations_of
from xdscore.schema.spelling import spelled
from xdscore.schema.types_registry import descriptor_of, message_name, nearest_types, new_message
from xdscore.schema.walk import AnyMessage
from xdscore.schema.wrapper import Envelope, open_wrapper, ttl_finding
from xdscore.snapshot import content_hash

DEFAULT_RESOURCE_LIMITS = ResourceLimits()
# Of what can never be used; nobody corrects more of them at once.
_MAX_UNUSED = 50


@dataclass(frozen=True, slots=True)
class Expected:
    """The type and name that a manifest must have because the address of the request says so; empty where it does
    not.
    """

    type_word: str = ""
    name: str = ""


ANYTHING = Expected()


@dataclass(frozen=True, slots=True)
class ParsedResource:
    """A resource without errors.

    any_bytes: a google.protobuf.Any around the message, both serialised deterministically: equal input gives equal
      bytes within one version of protobuf (decisions D24).
    eds_name: the name under which an EDS cluster asks for its endpoints; else empty.
    ttl_ms: 0 without a ttl.
    references: the resources that this one needs.
    findings: warnings and notes only.
    claims: what no other resource may have at the same time, such as an address.
    expiries: when its certificates expire, each with its place.
    labels: all labels that the resource is to have; None where the manifest says nothing of labels.
    """

    type: ResourceType
    name: str
    any_bytes: bytes
    content_hash: bytes
    eds_name: str
    ttl_ms: int
    references: tuple[Reference, ...]
    findings: tuple[Finding, ...]
    claims: tuple[str, ...] = ()
    expiries: tuple[tuple[str, Expiry], ...] = ()
    labels: Labels | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A manifest with errors. `type_word` and `name` are empty where they could not be read."""

    type_word: str
    name: str
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Attempt:
    """A manifest while it is parsed, with what is known of it so far. Paths of findings are those in the manifest."""

    manifest: Manifest
    found: list[tuple[Path, Finding]] = field(default_factory=list)
    kind: ResourceType | None = None
    name: str = ""
    unshown: int = 0
    spellings: list[tuple[Path, Finding]] = field(default_factory=list)
    unused: list[Said] = field(default_factory=list)

    def say(self, path: Path, finding: Finding) -> None:
        self.found.append((path, finding))

    def findings(self) -> tuple[Finding, ...]:
        """All findings so far, with their places in the body and the resource's type and name."""
        word = self.kind.word if self.kind else ""
        name = "" if name_problem(self.name) else self.name
        unshown = self.unshown + max(len(self.found) - MAX_FINDINGS, 0)
        # What is wrong or dangerous is never left out for the sake of what is merely written in another way.
        shown = [*self.found[:MAX_FINDINGS], *(((), each) for each in self.manifest.notes), *self.spellings]
        shown += self._never_used()
        placed = [self.manifest.located(finding, path).about(word, name) for path, finding in shown]
        if unshown:
            placed.append(self.manifest.located(TOO_MANY_FINDINGS.finding("", count=unshown), ()).about(word, name))
        return tuple(placed)

    def _never_used(self) -> Iterator[tuple[Path, Finding]]:
        tree = self.manifest.tree
        for said in self.unused[:_MAX_UNUSED]:
            pointer, line = self.manifest.place_of(spelled(tree, said.first))
            yield spelled(tree, said.place), said.finding(f"line {line}" if line else pointer)
        if len(self.unused) > _MAX_UNUSED:
            yield (), MORE_UNUSED.finding("", count=len(self.unused) - _MAX_UNUSED)

    def refused(self) -> Refused:
        """The manifest as Refused, with all that is known of it so far."""
        return Refused(self.kind.word if self.kind else "", self.name, self.findings())


def parse(
    manifest: Manifest,
    expected: Expected = ANYTHING,
    limits: ResourceLimits = DEFAULT_RESOURCE_LIMITS,
    *,
    now: datetime | None = None,
    policy: ContentPolicy = DEFAULT_POLICY,
) -> ParsedResource | Refused:
    """The resource that a manifest describes, or its errors; never raises, whatever the manifest holds.

    `now`: the time at which certificates are judged (None: they are not). `policy`: what it refuses of unknown fields
    and bytes of unknown types is an error here, since there is nothing to take. Other dangerous content is noted only;
    `content_policy.graded` decides whether it is allowed.
    """
    attempt = _Attempt(manifest)
    try:
        return _parse(attempt, expected, limits, now, policy)
    except RecursionError:
        # Raised limits on depth can exceed the interpreter's stack; that is a refusal like any other depth (threat 12).
        attempt.say((), TOO_DEEP.finding("", what="Values", limit=limits.max_message_depth))
        return attempt.refused()


def _parse(
    attempt: _Attempt, expected: Expected, limits: ResourceLimits, now: datetime | None, policy: ContentPolicy
) -> ParsedResource | Refused:
    manifest = attempt.manifest
    labels, problems = labels_in(manifest.tree)
    attempt.found.extend(problems)
    envelope = open_wrapper({key: value for key, value in manifest.tree.items() if key != LABELS_KEY})
    attempt.found.extend(envelope.found)
    tree, path = envelope.tree, envelope.path
    kind = attempt.kind = _type_of(attempt, envelope, expected) if tree or not envelope.wrapped else None
    if kind is None:
        return attempt.refused()
    if envelope.ttl_ms:
        attempt.say(("ttl",), ttl_finding(kind, envelope.ttl_ms, limits.min_ttl_ms, limits.max_ttl_ms))
    message: AnyMessage = new_message(kind.message)
    conversion = Conversion(limits, policy)
    conversion.fill(message, tree, path, Depth(), in_any=True)
    attempt.found.extend(conversion.findings)
    attempt.spellings = conversion.warnings(path)
    attempt.unshown += conversion.unshown
    attempt.name = _name_of(attempt, message, envelope, expected, conversion.blamed)
    _check_rules(attempt, message, path, conversion.blamed)
    ruled = {place for place, _ in attempt.found}
    expiries: list[tuple[str, Expiry]] = []
    for place, each in content_of(message, complete=conversion.complete, policy=policy):
        found_at = spelled(manifest.tree, path + place)
        if isinstance(each, Expiry):
            expiries.append((pointer_of(manifest.path + found_at), each))
            said = each.finding(now) if now is not None else None
        elif isinstance(each, Said) and each.code in NEVER_USED:
            attempt.unused.append(each.below(path))
            continue
        elif isinstance(each, Said):
            if found_at in ruled:
                continue  # the field's own rule speaks already
            said = each.finding(pointer_of(spelled(manifest.tree, path + each.first)))
        else:
            said = each
        if said is not None:
            attempt.say(found_at, said)
    any_bytes = _encoded(attempt, message, limits)
    findings = attempt.findings()
    if has_errors(findings):
        return Refused(kind.word, attempt.name, findings)
    return ParsedResource(
        type=kind,
        name=attempt.name,
        any_bytes=any_bytes,
        content_hash=content_hash(any_bytes),
        eds_name=eds_name_of(message),
        ttl_ms=envelope.ttl_ms,
        references=tuple(
            Reference(named.word, name, pointer_of(manifest.path + spelled(manifest.tree, path + place)))
            for named, name, place in named_by(message)
        ),
        findings=findings,
        claims=claims_of(message, attempt.name),
        expiries=tuple(expiries),
        labels=labels,
    )


def _type_of(attempt: _Attempt, envelope: Envelope, expected: Expected) -> ResourceType | None:
    """The resource type of the manifest; None, after a finding, when it has none that Parley serves."""
    tree, path = envelope.tree, envelope.path
    wanted = by_word.get(expected.type_word)
    if "@type" not in tree:
        hint = f'Add "@type": "{wanted.url}".' if wanted is not None else ""
        attempt.say(path, TYPE_MISSING.finding("", hint=hint))
        return None
    place = (*path, "@type")
    url = tree["@type"]
    if not isinstance(url, str):
        attempt.say(place, WRONG_TYPE.finding("", field="@type", wanted="a type URL", given=kind_of(url)))
        return None
    kind = by_url.get(url)
    if kind is None:
        attempt.say(place, _unserved(url))
    elif wanted is not None and kind is not wanted:
        attempt.say(place, TYPE_DIFFERS.finding("", given=kind.title, wanted=wanted.title))
    return kind


def _unserved(url: str) -> Finding:
    """The finding that Parley does not serve this type URL, with the most similar one that it serves."""
    name = message_name(url)
    if name in by_message:
        return TYPE_URL_FORM.finding("", hint=f"Write {by_message[name].url}.", name=url)
    close = [candidate for candidate in nearest_types(url) if candidate in by_url]
    hint = f"Did you mean {close[0]}?" if close else ""
    if descriptor_of(name) is None:
        return TYPE_UNKNOWN.finding("", hint=hint, name=name)
    served = ", ".join(f"{kind.message} ({kind.word})" for kind in RESOURCE_TYPES)
    return TYPE_NOT_SERVED.finding("", hint=hint or f"Resource types are: {served}.", name=name)


def _name_of(attempt: _Attempt, message: AnyMessage, envelope: Envelope, expected: Expected, blamed: set[Path]) -> str:
    """The resource's xDS name in canonical form (H1): the Resource wrapper's when it gives one, else the message's own.
    `blamed`: paths that already have an error.
    """
    kind = attempt.kind
    if kind is None:
        raise AssertionError  # asked only once the type is known
    own: str = getattr(message, kind.name_field)
    name = envelope.name or own
    path = ("name",) if envelope.name else spelled(attempt.manifest.tree, (*envelope.path, kind.name_field))
    if name == "":
        if path not in blamed:
            attempt.say(path, NAME_MISSING.finding("", title=kind.title, field=kind.name_field))
        return ""
    problem = name_problem(name)
    if problem:
        attempt.say(path, NAME_REFUSED.finding("", problem=problem))
    elif expected.name and canonical(name) != canonical(expected.name):
        attempt.say(path, NAME_DIFFERS.finding("", given=name, wanted=expected.name))
    return canonical(name)


def _check_rules(attempt: _Attempt, message: AnyMessage, path: Path, blamed: set[Path]) -> None:
    """Add the violations of field rules, except at or next to the paths in `blamed`, where a finding of the conversion
    already says what is wrong.

    There, a rule would complain of the error's consequences, such as of a field that is missing because its name was
    misspelt.
    """
    said = blamed | {place for place, finding in attempt.found if finding.severity is Severity.ERROR}
    around = {place[:length] for place in said for length in range(len(path), len(place) + 1)}
    for place, finding in violations_of(message):
        found_at = spelled(attempt.manifest.tree, path + place)
        inside = any(found_at[:length] in said for length in range(len(path) + 1, len(found_at)))
        if found_at not in around and not inside:
            attempt.say(found_at, finding)


def _encoded(attempt: _Attempt, message: AnyMessage, limits: ResourceLimits) -> bytes:
    """The canonical bytes of the resource; empty, after a finding, when there are none."""
    try:
        inner = message.SerializeToString(deterministic=True)
        any_bytes = AnyProto(type_url=TYPE_URL_PREFIX + message.DESCRIPTOR.full_name, value=inner).SerializeToString(
            deterministic=True
        )
        type(message).FromString(inner)
    except (EncodeError, DecodeError) as error:
        # Nothing may be stored that clients could not read back.
        attempt.say((), CONVERSION_FAILED.finding("", problem=str(error).partition("\n")[0]))
        return b""
    if len(any_bytes) > limits.max_bytes:
        attempt.say((), TOO_LARGE.finding("", size=len(any_bytes), limit=limits.max_bytes))
    return any_bytes
