"""Says in the log which change clients refuse, as soon as it is known whose content it was: what ADS says at the moment
of the refusal (`stream.nacked`) knows the names, and not who wrote them.
"""

from collections.abc import Collection, Sequence
from typing import Final

import structlog

from controlplane.catalog.change_names import ChangeName, named_fields
from controlplane.incidents.services.reading import RefusalGroup

log = structlog.get_logger(__name__)

# Of one batch; ever new names make ever new lines.
_LINES_MAX: Final = 20


def refusals_told(groups: Sequence[RefusalGroup], fresh: Collection[int]) -> None:
    """Log one line for each content that these NACKs are about, of which the ids in `fresh` are new; beyond that,
    count.
    """
    new = [
        (group.newest, found) for group in groups if (found := [nack for nack, _ in group.nacks if nack.id in fresh])
    ]
    for refusal, nacks in new[:_LINES_MAX]:
        log.warning(
            "change.refused",
            environment=refusal.environment,
            type=refusal.word,
            name=refusal.name,
            revision=refusal.revision,
            times=sum(nack.repeats for nack in nacks),
            clients=len({nack.client for nack in nacks}),
            node_id=nacks[-1].node_id,
            **named_fields([ChangeName(refusal.change, refusal.request_id)] if refusal.change else ()),
        )
    if len(new) > _LINES_MAX:
        log.warning("change.refused_more", contents=len(new) - _LINES_MAX)
