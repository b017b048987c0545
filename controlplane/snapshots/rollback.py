"""The way back: resources become what an earlier snapshot served, as a new change (decisions U4, U5)."""

from collections.abc import Iterator
from typing import Final

from controlplane.accounts.principal import Principal
from controlplane.catalog.contents import addresses_now, contents_at
from controlplane.catalog.guarding import NO_CONSENT, Consent
from controlplane.catalog.services import Terms, change_apply, change_plan
from controlplane.catalog.undoing import GoesBack
from controlplane.catalog.values import ChangeMade, ChangePlanned, Delete, Edit, Put, ResourceContent
from controlplane.common.errors import InputInvalid
from controlplane.snapshots.history import PastSnapshot, generation_at, snapshot_at
from xdscore.findings import Finding
from xdscore.resource_types import by_word
from xdscore.schema import Expected, Manifest, ParsedResource, Refused, parse, to_json_with_secrets

_THROUGH_HOLD: Final = Terms(overrides_hold=True)


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
    """Roll an environment back: make the resources what the snapshot of `to_epoch` served; `hold`: refuse later changes
    of them until released.

    Only resources go back: access rules stay, because an old one could re-open what was revoked since (U4). A name that
    had nothing to serve then stays as it is. A hold that is there already does not stand in the way.

    Raises NotFound, Gone, LossRefused, and InputInvalid with every finding when content of then is refused by the rules
    of today.
    """
    past = snapshot_at(environment_key=environment_key, epoch=to_epoch)
    return change_apply(
        environment_key=environment_key,
        edits=_edits(environment_key, past),
        actor=actor,
        message=f"roll back to snapshot {to_epoch}: {reason}"[:1000],
        terms=_THROUGH_HOLD,
        back=GoesBack(
            hold=f"rolled back to snapshot {to_epoch}: {reason}"[:500] if hold else "",
            to_generation=generation_at(environment_key=environment_key, epoch=to_epoch),
        ),
        request_id=request_id,
        consent=consent,
    )


def rollback_plan(*, environment_key: str, to_epoch: int) -> ChangePlanned:
    """What `environment_rollback` would do now, and what connected clients would lose by it. Raises what it would
    raise, but for LossRefused.
    """
    past = snapshot_at(environment_key=environment_key, epoch=to_epoch)
    return change_plan(environment_key=environment_key, edits=_edits(environment_key, past), terms=_THROUGH_HOLD)


def _edits(environment_key: str, past: PastSnapshot) -> list[Edit]:
    return [*_put_back(environment_key, past), *_taken_out(environment_key, past)]


def _put_back(environment_key: str, past: PastSnapshot) -> list[Edit]:
    now = addresses_now(environment_key=environment_key)
    wanted = {key: address for key, address in past.addresses.items() if now.get(key) != address}
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


def _taken_out(environment_key: str, past: PastSnapshot) -> Iterator[Delete]:
    known = past.served.keys() | past.withheld
    for word, name in sorted(addresses_now(environment_key=environment_key)):
        if (word, name) not in known:
            yield Delete(by_word[word], name, missing_ok=True)


def _parsed(content: ResourceContent) -> ParsedResource | Refused:
    tree = to_json_with_secrets(content.any_bytes, xds_name=content.name, ttl_ms=content.ttl_ms)
    return parse(Manifest(tree), Expected(content.kind.word, content.name))
