"""One line of a manifest, shown where it stands."""

from dataclasses import dataclass

from xdscore.schema import Media, read_text
from xdscore.schema.positions import path_of

_WRAPPER = "type.googleapis.com/envoy.service.discovery.v3.Resource"


@dataclass(frozen=True, slots=True)
class Marked:
    """A manifest's text around the line, counted from 1, of what a pointer points to, or of the nearest value around
    that.
    """

    pointer: str
    number: int
    before: str
    line: str
    after: str


def marked(text: str, pointer: str) -> Marked | None:
    """The YAML of one manifest with the line that a pointer points to, into the manifest or the resource in it; None
    where it cannot be told.
    """
    if not pointer.startswith("/"):
        return None
    documents = read_text(text.encode("utf-8", "replace"), Media.YAML).documents
    if not documents:
        return None
    tree = documents[0].tree
    wrapped = isinstance(tree, dict) and tree.get("@type") == _WRAPPER
    root = "/resource" if wrapped and not pointer.startswith("/resource/") else ""
    number, _ = documents[0].positions.at(path_of(root + pointer, tree))
    lines = text.split("\n")
    if not 1 <= number <= len(lines):
        return None
    before = "\n".join((*lines[: number - 1], ""))
    after = "\n".join(("", *lines[number:]))
    return Marked(pointer, number, before, lines[number - 1], after)
