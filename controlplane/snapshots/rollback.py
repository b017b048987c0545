"""The way back: resources become what an earlier snapshot served, as a new change (decisions U4, U5)."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from controlplane.accounts.principal import Principal, Role
from controlplane.catalog.contents import addresses_now, contents_at
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.reading import resource_limits
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.staging import staged_keys
from controlplane.catalog.undoing import GoesBack
from controlplane.catalog.values import ChangeMade, ChangePlanned, Delete, Edit, Put, ResourceContent
from controlplane.common.errors import InputInvalid
from controlplane.snapshots.history import PastSnapshot, generation_at, snapshot_at
from xdscore.findings import Finding
from xdscore.resource_types import by_word
from xdscore.schema import Expected, Manifest, ParsedResource, Refused, parse, to_json_with_secrets
from xdscore.schema.content_policy import TAKES_UNKNOWN
from xdscore.snapshot import EntryKey

# A rollback reaches both sides at once (rollouts.md R13).
_TERMS: Final = Terms(overrides_hold=True, staged=False, roles=(Role.OPERATOR,))


def environment_rollback(
    *,
    environment_key: str,
    to_epoch: int,
    reason: str,
    hold: bool,
    actor: Principal,
    request_id: str = "",
    consent: Consent = NO_CONSENT,
) -> ChangeMade:
    """Roll an environment back: write the resources as the snapshot of `to_epoch` served them, as a new change. `hold`:
    also put the environment on hold, so that later changes of resources are refused until it is released.

    Only resources go back, on both sides of an open rollout (rollouts.md R13). Access rules stay, because an old one
    could permit again what was revoked since (U4). A name of which that snapshot had nothing to serve stays as it is
    now. An environment on hold can be rolled back.

    Raises NotFound, Gone, LossRefused, and InputInvalid with every finding when today's rules refuse a content of that
    snapshot.
    """
    past = snapshot_at(environment_key=environment_key, epoch=to_epoch)
    return change_apply(
        environment_key=environment_key,
        edits=_edits(environment_key, past),
        actor=actor,
        message=f"roll back to snapshot {to_epoch}: {reason}"[:1000],
        terms=_TERMS,
        back=GoesBack(
            hold=f"rolled back to snapshot {to_epoch}: {reason}"[:500] if hold else "",
            to_generation=generation_at(environment_key=environment_key, epoch=to_epoch),
        ),
        request_id=request_id,
        consent=consent,
    )


def rollback_plan(*, environment_key: str, to_epoch: int) -> ChangePlanned:
    """What `environment_rollback` would do now, and what connected clients would lose by it. Raises what that raises,
    except LossRefused.
    """
    past = snapshot_at(environment_key=environment_key, epoch=to_epoch)
    edits = _edits(environment_key, past)
    return change_plan(environment_key=environment_key, edits=edits, asker=None, terms=_TERMS)


def _edits(environment_key: str, past: PastSnapshot) -> list[Edit]:
    now = addresses_now(environment_key=environment_key)
    # What is staged is edited, too, where it is as wanted already: not everybody has it.
    staged = staged_keys(environment_key=environment_key)
    return [*_put_back(environment_key, past, now, staged), *_taken_out(past, now.keys() | staged)]


def _put_back(
    environment_key: str, past: PastSnapshot, now: Mapping[EntryKey, str], staged: Collection[EntryKey]
) -> list[Edit]:
    wanted = {key: address for key, address in past.addresses.items() if key in staged or now.get(key) != address}
    edits: list[Edit] = []
    findings: list[Finding] = []
    for _key, content in contents_at(environment_key=environment_key, addresses=wanted):
        found = _parsed(content)
        if isinstance(found, ParsedResource):
            edits.append(Put(found))
        else:
            findings += [each.about(content.kind.word, content.name) for each in found.findings]
    if findings:
        raise InputInvalid(
            f"Snapshot {past.epoch} holds resources that are not valid any more. Nothing was changed.",
            findings=tuple(findings),
        )
    return edits


def _taken_out(past: PastSnapshot, names: Collection[EntryKey]) -> Iterator[Delete]:
    known = past.served.keys() | past.withheld
    for word, name in sorted(names):
        if (word, name) not in known:
            yield Delete(by_word[word], name, missing_ok=True)


def _parsed(content: ResourceContent) -> ParsedResource | Refused:
    tree = to_json_with_secrets(content.any_bytes, xds_name=content.name, ttl_ms=content.ttl_ms)
    return parse(Manifest(tree), Expected(content.kind.word, content.name), resource_limits(), policy=TAKES_UNKNOWN)
