"""What is worth saying of a resource's content beyond its shape and rules, in one walk through everything in it:
what cannot be read (`traversal`), fields that do not go together (`relations`), what can never be used (`never_used`),
notices of the API (`notices`), dangers (`dangers`), certificates and keys (`certificates`). Called by `parse`; pure.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from xdscore.findings import Finding, Severity
from xdscore.schema.certificates import Expiry, certificates_in
from xdscore.schema.codes import COMMAND_UNKNOWN, EXTENSION_UNKNOWN
from xdscore.schema.content_policy import ContentPolicy, Stance
from xdscore.schema.dangers import DangerSearch
from xdscore.schema.never_used import never_used_in
from xdscore.schema.notices import notices_of
from xdscore.schema.positions import Path
from xdscore.schema.relations import Said, relations_in
from xdscore.schema.traversal import everything_in, unreadable_in
from xdscore.schema.walk import AnyMessage

# What a newer Envoy, or an operator's own, may know.
_UNKNOWN: Final = frozenset({COMMAND_UNKNOWN, EXTENSION_UNKNOWN})


def content_of(
    message: AnyMessage, *, complete: bool, policy: ContentPolicy
) -> Iterator[tuple[Path, Finding | Expiry | Said]]:
    """Every finding about the content that holds at any time, what is said of fields that do not go together, and when
    certificates expire, each with its path. `complete`: `message` has all that was written; otherwise relations between
    fields are not judged. `policy`: as `parse` has it.
    """
    dangers = DangerSearch()
    refuses_unknown = policy.unknown_fields is Stance.REFUSE
    for path, each in everything_in(message):
        yield from unreadable_in(each, path, policy)
        yield from notices_of(each, path)
        if complete:
            for said in relations_in(each, path, message):
                is_note = said.code in _UNKNOWN and not refuses_unknown
                yield said.place, replace(said, severity=Severity.NOTE) if is_note else said
            for said in never_used_in(each, path):
                yield said.place, said
        yield from dangers.look(each, path)
        yield from certificates_in(each, path)
