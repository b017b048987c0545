"""The labels that a manifest says its resource has, beside the message: `"@labels": {"team": "pay"}`."""

from xdscore.findings import Finding
from xdscore.labels import LABELS_KEY, Labels, count_problem, key_problem, value_problem
from xdscore.schema.codes import VALUE_REFUSED, WRONG_TYPE
from xdscore.schema.json_kinds import kind_of
from xdscore.schema.positions import Path
from xdscore.schema.text import Tree


def labels_in(tree: dict[str, Tree]) -> tuple[Labels | None, list[tuple[Path, Finding]]]:
    """The labels in a manifest, and what is wrong with them, each with its path in the manifest. None where it says
    nothing of labels.
    """
    if LABELS_KEY not in tree:
        return None, []
    given = tree[LABELS_KEY]
    if not isinstance(given, dict):
        return None, [_wrong((LABELS_KEY,), LABELS_KEY, "an object of texts", given)]
    labels: dict[str, str] = {}
    found: list[tuple[Path, Finding]] = []
    for key, value in given.items():
        path = (LABELS_KEY, key)
        if not isinstance(value, str):
            found.append(_wrong(path, key, "a text", value))
        elif problem := key_problem(key) or value_problem(key, value):
            found.append(
                (path, VALUE_REFUSED.finding("", hint=problem, field=LABELS_KEY, problem="holds what is no label"))
            )
        else:
            labels[key] = value
    if problem := count_problem(given):
        found.append(((LABELS_KEY,), VALUE_REFUSED.finding("", field=LABELS_KEY, problem=problem)))
    return labels, found


def _wrong(path: Path, field: str, wanted: str, given: Tree) -> tuple[Path, Finding]:
    return path, WRONG_TYPE.finding("", field=field, wanted=wanted, given=kind_of(given))
