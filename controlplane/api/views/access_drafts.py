"""Access rules and client groups as request bodies have them: to drafts, and to what a change set does with them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from django.conf import settings

from controlplane.access.choices import EditSubject
from controlplane.access.planning import said_of, wish_findings
from controlplane.access.values import GroupDraft, RuleDraft, Wish
from controlplane.api.bodies import located_in
from controlplane.common.errors import InputInvalid
from xdscore.access import Effect
from xdscore.client_groups import Trust
from xdscore.environment_choice import Selector
from xdscore.findings import Finding
from xdscore.limits import Limits
from xdscore.schema.positions import path_of
from xdscore.schema.text import Document

WISHES: Final = ("rules", "groups", "delete_rules", "delete_groups")
"""The members of a body that together are all that a change set does with rules and groups."""


def group_draft(values: Mapping[str, Any]) -> GroupDraft:
    """The client group that the checked values of a body describe."""
    matchers = tuple(Selector(**matcher) for matcher in values["matchers"])
    return GroupDraft(values["key"], matchers, Trust(values["trust"]))


def rule_draft(values: Mapping[str, Any]) -> RuleDraft:
    """The access rule that the checked values of a body describe."""
    return RuleDraft(
        effect=Effect(values["effect"]),
        pattern=values["pattern"],
        position=values.get("position"),
        client_groups=tuple(values["client_groups"]),
        types=tuple(values["types"]),
        message=values["message"],
        enabled=values["enabled"],
    )


def wishes_read(values: Mapping[str, Any]) -> tuple[Wish, ...] | None:
    """What a body says that a change set does with rules and groups; None where it says nothing of them."""
    if not any(member in values for member in WISHES):
        return None
    rule, group = EditSubject.RULE, EditSubject.GROUP
    return (
        *(Wish(rule, "", each.get("id"), rule_draft(each), at) for at, each in _placed(values, "rules")),
        *(Wish(group, each["key"], each.get("id"), group_draft(each), at) for at, each in _placed(values, "groups")),
        *(Wish(rule, "", number, None, at) for at, number in _placed(values, "delete_rules")),
        *(Wish(group, key, None, None, at) for at, key in _placed(values, "delete_groups")),
    )


def wishes_problems(document: Document, values: Mapping[str, Any], environment_key: str) -> tuple[Finding, ...]:
    """Everything that is wrong with the rules and groups of a body by themselves, each with its place."""
    limits: Limits = settings.PARLEY.limits
    return tuple(
        _located(document, said_of(each, said))
        for each in wishes_read(values) or ()
        for said in wish_findings(each, limits, environment=environment_key)
    )


@contextmanager
def wishes_placed(document: Document) -> Iterator[None]:
    """Within the block, findings about what `wishes_read` read get the line and column of their place in the body."""
    try:
        yield
    except InputInvalid as error:
        error.findings = tuple(_located(document, each) for each in error.findings)
        raise


def _located(document: Document, finding: Finding) -> Finding:
    if finding.pointer.split("/")[1:2] not in ([member] for member in WISHES):
        return finding
    return located_in(document, path_of(finding.pointer, document.tree), finding)


def _placed(values: Mapping[str, Any], member: str) -> Sequence[tuple[str, Any]]:
    return [(f"/{member}/{index}", each) for index, each in enumerate(values.get(member, ()))]
