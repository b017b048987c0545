"""Which resource type a path or a body means."""

from controlplane.common.errors import InputInvalid, NotFound
from xdscore.codes import shown
from xdscore.findings import Finding, Severity
from xdscore.names import canonical, name_problem
from xdscore.resource_types import RESOURCE_TYPES, ResourceType, by_url, by_word
from xdscore.schema.codes import NAME_REFUSED


def kind_named(text: str) -> ResourceType | None:
    """The resource type with this word or type URL; None where there is none."""
    return by_word.get(text) or by_url.get(text)


def kind_in_path(text: str) -> ResourceType:
    """The resource type with the word or type URL that stands in a path. Raises NotFound, which names all types, where
    there is none.
    """
    kind = kind_named(text)
    if kind is None:
        raise NotFound(
            f"There is no resource type '{shown(text)}' in the path. Types are {type_words()}, or their type URLs."
        )
    return kind


def name_in_path(kind: ResourceType, name: str) -> str:
    """The canonical form of a resource name that stands in a path. Raises InputInvalid when no resource can have the
    name.
    """
    problem = name_problem(name)
    if problem:
        finding = NAME_REFUSED.finding("", problem=problem)
        raise InputInvalid(
            f"The name in the path cannot name a {kind.word}. Nothing was changed.",
            findings=(
                Finding(
                    code=finding.code,
                    severity=Severity.ERROR,
                    detail=finding.detail,
                    hint="Percent-encode the name in the path: '/' is %2F, '?' is %3F, '%' is %25.",
                    resource_type=kind.word,
                ),
            ),
        )
    return canonical(name)


def type_words() -> str:
    """The words of all resource types, separated by commas, for a sentence."""
    return ", ".join(kind.word for kind in RESOURCE_TYPES)
