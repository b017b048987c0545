"""Says in the log which change clients refuse, as soon as it is known whose content it was: what ADS says at the moment
of the refusal (`stream.nacked`) knows the names, and not who wrote them.
"""

from collections.abc import Collection, Sequence
from typing import Final

import structlog

from controlplane.catalog.change_names import ChangeName, named_fields
from controlplane.incidents.services.accusations import Case

log = structlog.get_logger(__name__)

# Of one batch; ever new names make ever new lines.
_LINES_MAX: Final = 20


def refusals_told(cases: Sequence[Case], fresh: Collection[int]) -> None:
    """Log one line for each content that these NACKs are about, of which the ids in `fresh` are new; beyond that,
    count.
    """
    new = [(case.newest, found) for case in cases if (found := [nack for nack, _ in case.nacks if nack.id in fresh])]
    for accusation, nacks in new[:_LINES_MAX]:
        log.warning(
            "change.refused",
            environment=accusation.environment,
            type=accusation.word,
            name=accusation.name,
            revision=accusation.revision,
            times=sum(nack.repeats for nack in nacks),
            clients=len({nack.client for nack in nacks}),
            node_id=nacks[-1].node_id,
            **named_fields([ChangeName(accusation.change, accusation.request_id)] if accusation.change else ()),
        )
    if len(new) > _LINES_MAX:
        log.warning("change.refused_more", contents=len(new) - _LINES_MAX)
