"""How a JSON value is called in a sentence. Free text is never quoted: it may be a secret (reliability S5)."""

_WORDS: dict[type, str] = {str: "a string", list: "a list", dict: "an object", type(None): "null"}
# A number with more digits than this says nothing to a reader.
_MAX_SHOWN = 1e40


def kind_of(value: object) -> str:
    """How a sentence calls the JSON value, e.g. "a string". A number or boolean is given as it is, because it is short
    and no secret.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}" if abs(value) < _MAX_SHOWN else "a large number"
    return _WORDS.get(type(value), f"a {type(value).__name__}")
