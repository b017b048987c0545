"""Which facts of a stream the judge of a rollout waits for."""

from collections.abc import Mapping

from adsserver.engine.events import Acknowledged, Fact, Rejected, Subscribed, Variant, Violated


def is_about(names: Mapping[str, frozenset[str]], fact: Fact, variant: Variant) -> bool:
    """Whether a fact of a stream of this variant says something of one of these names, which are given by the words of
    their types. A refusal, another subscription, and the ACK of a full state may be about any name of their type.
    """
    match fact:
        case Acknowledged(kind=kind) if variant is Variant.SOTW and kind.full_state:
            # It has every name of its type, which may be tens of thousands: none is looked at.
            return kind.word in names
        case Acknowledged(kind=kind, resources=resources, errors=errors, removed=removed):
            some = names.get(kind.word, frozenset())
            return bool(some) and not some.isdisjoint(
                [*(each.name for each in resources), *(each.name for each in errors), *removed]
            )
        case Subscribed(kind=kind) | Rejected(kind=kind):
            return kind.word in names
        case Violated():
            return False
