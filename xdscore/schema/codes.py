"""The catalogue of XDS1xxx codes: parse and schema (ux.md section 8). One row per code, text and hint as templates.

A code never changes its meaning and is never used again for another. `Code.finding` fills the templates; values that
came from outside go through `shown` first, so that a detail is always one short printable line. Values of free text
fields are never quoted: they may be secrets (reliability S5).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from xdscore.findings import Finding, Severity

# Long enough for a full message name, short enough for a line of log.
MAX_SHOWN_CHARS = 120


def shown(text: object, limit: int = MAX_SHOWN_CHARS) -> str:
    """`text` on one printable line, cut in its middle when longer than `limit` characters."""
    line = "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in str(text))
    if len(line) <= limit:
        return line
    half = (limit - 1) // 2
    return f"{line[:half]}…{line[len(line) - (limit - 1 - half) :]}"


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the catalogue. `title` heads its documentation; `detail` and `hint` are filled by `str.format`."""

    code: str
    title: str
    detail: str
    hint: str = ""
    severity: Severity = Severity.ERROR

    def finding(self, pointer: str, *, hint: str = "", **values: object) -> Finding:
        """A finding of this code at `pointer`. `hint` replaces the catalogue's hint where the caller knows better."""
        return self.filled(values, pointer=pointer, hint=hint)

    def filled(self, values: Mapping[str, object], *, pointer: str = "", hint: str = "") -> Finding:
        """The same, with the values in one mapping."""
        filled = {key: shown(value) for key, value in values.items()}
        return Finding(
            code=self.code,
            severity=self.severity,
            detail=self.detail.format(**filled),
            hint=hint or self.hint.format(**filled),
            pointer=pointer,
        )


# 100x: the text
SYNTAX = Code(
    "XDS1001", "Text that cannot be read", "The text is not {media}: {problem}.", "Correct the text at this line."
)
DUPLICATE_KEY = Code(
    "XDS1002",
    "A key given twice",
    "The key '{key}' is given twice in one object.",
    "Keep one of the two; the first is on line {first}.",
)
YAML_FEATURE = Code(
    "XDS1003",
    "YAML beyond plain data",
    "The YAML uses {feature}, which manifests may not.",
    "Write the value out in full.",
)
TEXT_LIMIT = Code(
    "XDS1004", "Text beyond a limit", "The text {problem}; at most {limit} allowed.", "Split it into several requests."
)
BAD_CHARACTER = Code(
    "XDS1005",
    "A character or number no manifest may hold",
    "The text holds {problem}.",
    "Remove it, or write it in another way.",
)
NOT_A_MANIFEST = Code(
    "XDS1006",
    "Not a manifest",
    "{what} is not a resource.",
    "Write an object with '@type', a list of such objects, an Envoy bootstrap with static_resources, a config_dump or a"
    " DiscoveryResponse.",
)
NOTHING_FOUND = Code("XDS1007", "No resource", "The text holds no resource.", "Add at least one object with '@type'.")

# 101x: the shape of a message
TYPE_MISSING = Code(
    "XDS1010", "No @type", "The object has no '@type'.", 'Add "@type": "type.googleapis.com/<message name>".'
)
TYPE_UNKNOWN = Code(
    "XDS1011",
    "Unknown @type",
    "No message type '{name}' is known.",
    "Check the spelling. Envoy's contrib extensions are not known to Parley.",
)
TYPE_NOT_SERVED = Code(
    "XDS1012",
    "A type Parley does not serve",
    "'{name}' is not a resource type that Parley serves.",
    "Resource types are: {served}.",
)
FIELD_UNKNOWN = Code("XDS1013", "Unknown field", "{message} has no field '{field}'.", "See the fields of {message}.")
WRONG_TYPE = Code("XDS1014", "Wrong type", "'{field}' must be {wanted}; it is {given}.")
ENUM_UNKNOWN = Code("XDS1015", "Unknown enum value", "'{field}' cannot be '{given}'.", "Choices: {choices}.")
VALUE_REFUSED = Code("XDS1016", "A value outside its form or range", "'{field}' {problem}.")
GIVEN_TWICE = Code(
    "XDS1017",
    "One choice given twice",
    "'{field}' and '{other}' are both given; only one of them may be.",
    "Keep one of the two.",
)
CONVERSION_FAILED = Code("XDS1018", "The value cannot be encoded", "The message cannot be encoded: {problem}.")
TYPE_URL_FORM = Code(
    "XDS1019",
    "A malformed type URL",
    "'{name}' is not a type URL.",
    "Write type.googleapis.com/ before the message's full name.",
)

# 102x: the resource
NAME_MISSING = Code("XDS1020", "No name", "The {title} has no name.", "Fill in '{field}'.")
NAME_REFUSED = Code("XDS1021", "A name that cannot be used", "The name {problem}.", "Choose another name.")
TYPE_DIFFERS = Code(
    "XDS1022",
    "Type differs from the address",
    "The manifest holds a {given}, the address names a {wanted}.",
    "Correct one of the two.",
)
NAME_DIFFERS = Code(
    "XDS1023",
    "Name differs from the address",
    "The manifest is named '{given}', the address names '{wanted}'.",
    "Correct one of the two, or wrap the manifest in envoy.service.discovery.v3.Resource to give it another xDS name.",
)
WRAPPER_FIELD = Code(
    "XDS1024", "A wrapper field Parley does not serve", "'{field}' of the Resource wrapper {problem}.", "{remedy}"
)
TOO_LARGE = Code(
    "XDS1025",
    "Resource too large",
    "The resource has {size} bytes; at most {limit} are allowed.",
    "Split it into several resources.",
)
TOO_DEEP = Code("XDS1026", "Nested too deeply", "{what} nest more than {limit} levels deep here.", "Flatten the value.")
TOO_MANY_FINDINGS = Code(
    "XDS1027", "More findings than shown", "{count} further findings are not shown.", "Correct these first."
)
TTL_NOT_DELIVERED = Code(
    "XDS1028",
    "A ttl that is not delivered",
    "The ttl is kept, but clients are not told of it in this release.",
    "Remove the ttl if the resource relies on it.",
    Severity.WARNING,
)
IGNORED_FIELD = Code(
    "XDS1029", "A field without effect", "'{field}' has no effect: {reason}.", "Remove it.", Severity.WARNING
)

# 103x: secrets read back
KEPT_UNKNOWN = Code(
    "XDS1030",
    "A kept secret that is not there",
    "'{field}' asks to keep a secret, but the stored resource has no such secret in this field.",
    "Give the value itself. A kept secret may only stay in the resource and field it came from.",
)

# 104x: field rules
REQUIRED = Code("XDS1040", "A required field is missing", "'{field}' is required.", "Add '{field}'.")
CHOICE_REQUIRED = Code(
    "XDS1041", "A required choice is missing", "One of {choices} is required.", "Add exactly one of them."
)
LENGTH = Code("XDS1042", "Length out of bounds", "'{field}' must have {bound}; it has {given}.")
RANGE = Code("XDS1043", "Number out of range", "'{field}' must be {bound}; it is {given}.")
COUNT = Code("XDS1044", "Too few or too many items", "'{field}' must have {bound}; it has {given}.")
PATTERN = Code("XDS1045", "Text of the wrong form", "'{field}' must {bound}.")
ENUM_UNDEFINED = Code(
    "XDS1046", "An enum value that may not be used", "'{field}' cannot be {given}.", "Choices: {choices}."
)
DUPLICATE_ITEM = Code(
    "XDS1047", "An item given twice", "'{field}' holds the same item at positions {first} and {second}.", "Remove one."
)
CONSTANT = Code("XDS1048", "A value that is not one of the allowed", "'{field}' must be {bound}.")
REGEX = Code(
    "XDS1049", "A regular expression that does not compile", "'{field}' is not a valid RE2 expression: {problem}."
)

# 106x: imports
STATIC_SKIPPED = Code(
    "XDS1060",
    "Static resources left out",
    "{count} static resources of '{section}' were left out: they live in the proxy's own bootstrap.",
    "Import the bootstrap file to take them over.",
    Severity.NOTE,
)
SECRET_REDACTED = Code(
    "XDS1061",
    "Secrets left out",
    "{count} secrets of the config_dump were left out: Envoy blanks their values.",
    "Add them from their source.",
    Severity.WARNING,
)
SECTION_SKIPPED = Code(
    "XDS1062", "A section left out", "The section '{section}' holds nothing that Parley serves.", "", Severity.NOTE
)

CATALOGUE: tuple[Code, ...] = tuple(row for row in list(globals().values()) if isinstance(row, Code))
"""Every code of this range, in order."""
