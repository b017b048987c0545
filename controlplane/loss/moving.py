"""To which environment a connected client would belong, were the environments other ones. Pure.

The metadata of clients is not kept. A selector over metadata that was there before has told which of its clients it
takes: they are in its environment. Of a new one nobody knows, so it is taken to take whomever it may.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controlplane.clients.fleet import Member
from xdscore.environment_choice import DEFAULT_ENVIRONMENT, ClientFacts, EnvironmentChoice, Selector

Choices = Sequence[EnvironmentChoice]


@dataclass(frozen=True, slots=True)
class Destination:
    """The environment that a client would go to, or None where none serves it; and whether that is certain."""

    environment: str | None
    certain: bool = True


def destination(member: Member, before: Choices, after: Choices) -> Destination:
    """The environment that the client would go to: the first, by position, with a selector that takes it; else
    `default`.
    """
    facts = member.facts
    known = {selector_key(selector) for choice in before for selector in choice.selectors}
    for choice in after:
        certain = _takes(choice, facts, known, is_here=choice.key == member.environment)
        if certain is not None:
            return Destination(choice.key if choice.takes_node(facts) else None, certain)
    fallback = next((choice for choice in after if choice.key == DEFAULT_ENVIRONMENT), None)
    return Destination(DEFAULT_ENVIRONMENT if fallback is None or fallback.takes_node(facts) else None)


def selector_key(selector: Selector) -> tuple[object, ...]:
    """A tuple that is equal for equal selectors; selectors themselves cannot be hashed."""
    return (selector.identity, selector.node_id, selector.node_cluster, *sorted(selector.metadata.items()))


def _takes(
    choice: EnvironmentChoice, facts: ClientFacts, known: set[tuple[object, ...]], *, is_here: bool
) -> bool | None:
    """Whether the environment takes the client for certain (True) or perhaps (False); None where it does not."""
    if any(selector.matches(facts) for selector in choice.selectors):
        return True
    for selector in choice.selectors:
        if selector.metadata and not facts.verified and selector.but_for_metadata(facts):
            if selector_key(selector) not in known:
                return False
            if is_here:
                return True
    return None
