"""What nobody has judged of what a server only tried, in words: an Envoy reads a change when it is built."""

from xdsctl.exits import JsonObject
from xdsctl.losses import first_of

BY_ENVOY = "whether an Envoy takes"


def unjudged(answer: JsonObject) -> tuple[str, ...]:
    """What was not judged, and why, by the member `not_judged` of the answer to a dry run: clauses that begin with
    "whether". None where the server, being of the version before, does not say.
    """
    return tuple(_clause(each) for each in answer.get("not_judged", ()))


def unjudged_lines(answer: JsonObject) -> tuple[str, ...]:
    """Lines that tell people what was not judged by an Envoy, and what to do about it. None where the answer does not
    say.
    """
    return tuple(
        f"Not judged: {_clause(each)}. {each.get('hint', '')}".rstrip() for each in answer.get("not_judged", ())
    )


def _clause(each: JsonObject) -> str:
    names = [f"{resource['type']}/{resource['name']}" for resource in each["resources"]]
    return f"{BY_ENVOY} {first_of(names, each['count'])} ({each['why']})"
