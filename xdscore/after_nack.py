"""What a client does with what it had, once it refused an update of that. Pure; docs/reference/after-a-nack.md has the
table, and the tests that hold it.
"""

from dataclasses import dataclass
from enum import Enum

from xdscore.client_kinds import ClientFamily
from xdscore.resource_types import ResourceType


class AfterNack(Enum):
    """What a client does with the content that it had of a name once it refused an update of it. The value is the
    wording in sentences.
    """

    KEEPS = "goes on with what it had"
    KEEPS_WHERE_IN_USE = "goes on with what it had where that is in use, and refuses what newly refers to it"
    MAY_DROP = "may have dropped it"


def after_nack(family: ClientFamily, kind: ResourceType, *, drops: bool | None) -> AfterNack:
    """What a client of this family does with the content that it had, after it refused an update of this type.

    `drops`: whether its bootstrap switches `fail_on_data_errors` on; None where nobody knows. Families that do not read
    the feature keep what they had, whatever the bootstrap says (clients.md section 1); except grpc-rust, which may not.
    """
    if family.may_drop_refused and (drops is not False or family is ClientFamily.GRPC_RUST):
        return AfterNack.MAY_DROP
    if family is ClientFamily.ENVOY and kind.remembers_refused:
        # Measured: what uses the secret goes on; a cluster or listener that is new or changed is refused with it.
        return AfterNack.KEEPS_WHERE_IN_USE
    return AfterNack.KEEPS


@dataclass(frozen=True, slots=True)
class NowRuns:
    """What a client runs after it refused a newer version, worded as the end of a sentence, such as "It refused r8 and
    goes on with r7". `sure`: whether it certainly has that content and can use the name.
    """

    words: str
    sure: bool

    def __str__(self) -> str:
        """The words that end the sentence."""
        return self.words


def now_runs(after: AfterNack, kept: str, *, healed: bool) -> NowRuns:
    """What a client runs after it refused an update. `after`: what such clients do then.

    `kept`: the revision of the name that it had acknowledged on the same stream, such as `r7`; empty where it had none.
    `healed`: whether the server sent it that revision again (protocol.md F17a).
    """
    if not kept:
        return NowRuns("had acknowledged nothing else of it on this stream", sure=False)
    if healed:
        return NowRuns(f"was given {kept} again", sure=True)
    match after:
        case AfterNack.KEEPS:
            return NowRuns(f"goes on with {kept}", sure=True)
        case AfterNack.KEEPS_WHERE_IN_USE:
            return NowRuns(f"goes on with {kept} where that is in use", sure=True)
        case AfterNack.MAY_DROP:
            return NowRuns(f"may have dropped {kept}", sure=False)
