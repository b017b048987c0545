"""Trees as YAML that people read and `read_yaml` reads back as the same tree."""

import yaml

WIDTH = 120
"""A text with spaces is folded where its line would be longer."""

# Line breaks of YAML 1.1, which are written as escapes: a reader takes them for spaces.
_BREAKS = frozenset("\x85\u2028\u2029")


def yaml_of(content: object) -> str:
    """`content` as YAML, keys in their given order, without aliases (which Parley refuses to read)."""
    text: str = yaml.dump(content, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=WIDTH)
    return text


def yaml_inline(content: object) -> str:
    """`content` as YAML on one line, as it may stand anywhere in a YAML text, also between brackets."""
    written: str = yaml.dump(
        [content], Dumper=_Plain, sort_keys=False, allow_unicode=True, width=float("inf"), default_flow_style=True
    )
    return written[1:-2]


class _Plain(yaml.SafeDumper):
    """A YAML dumper that repeats equal values instead of using aliases, and quotes every string that YAML 1.2 might
    take for a number.

    PyYAML writes YAML 1.1, in which 0o17 and 1e3 are strings; `xdscore.schema` reads YAML 1.2.
    """

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _string(dumper: _Plain, text: str) -> yaml.ScalarNode:
    quoted = text[:1] in "0123456789+-." and "\n" not in text
    style = '"' if not _BREAKS.isdisjoint(text) else "'" if quoted else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Plain.add_representer(str, _string)
