"""Texts to manifests: which resources a body holds, and where each of them stands in it.

`read_text` makes plain trees; `manifests_of` finds the resources in a tree: one manifest, a list, or one of the
containers that Envoy itself writes and reads (`containers`). `read_manifests` is both in one step. A body with an error
yields no manifest at all: the API, the editor and `xdsctl` apply whole files or nothing. Nothing here knows what a
message may hold; that is `parse`'s part.
"""

from dataclasses import dataclass, replace

from xdscore.findings import Finding, has_errors
from xdscore.schema.codes import NOTHING_FOUND, TEXT_LIMIT
from xdscore.schema.containers import Part, parts_of
from xdscore.schema.json_text import read_json
from xdscore.schema.positions import NO_POSITIONS, Path, Positions, path_of, pointer_of
from xdscore.schema.text import Document, ManifestLimits, Media, TextRead, Tree, decode
from xdscore.schema.yaml_text import read_yaml

DEFAULT_LIMITS = ManifestLimits()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One resource as somebody wrote it.

    tree: the protobuf JSON of an `Any`.
    path: where it stands in the body; for several YAML documents the first part is the document's number.
    positions: the lines and columns of its document.
    skip: how many parts of `path` lead to the document, and do not count in `positions`.
    notes: findings about the manifest as a whole, which `parse` adds to its own.
    """

    tree: dict[str, Tree]
    path: Path = ()
    positions: Positions = NO_POSITIONS
    skip: int = 0
    notes: tuple[Finding, ...] = ()

    @property
    def pointer(self) -> str:
        """The JSON pointer of the manifest in its body."""
        return pointer_of(self.path)

    def located(self, finding: Finding, path: Path) -> Finding:
        """A copy of `finding`, which is about `path` inside this manifest, with its place in the body."""
        whole = self.path + path
        line, column = self.positions.at(whole[self.skip :])
        return replace(finding, pointer=pointer_of(whole), line=line, column=column)

    def place_of(self, path: Path) -> tuple[str, int]:
        """The JSON pointer in the body, and the line, of what stands at `path` inside this manifest; line 0: not
        known.
        """
        whole = self.path + path
        return pointer_of(whole), self.positions.at(whole[self.skip :])[0]


def read_text(body: bytes, media: Media, limits: ManifestLimits = DEFAULT_LIMITS) -> TextRead:
    """The documents of a body as plain trees with positions; no document when the findings have an error."""
    text = decode(body, media, limits)
    if isinstance(text, Finding):
        return TextRead((), (text,))
    return read_json(text, limits) if media is Media.JSON else read_yaml(text, limits)


def read_manifests(
    body: bytes, media: Media, limits: ManifestLimits = DEFAULT_LIMITS
) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """Every manifest of a body, and the findings about the body; no manifest when the findings have an error."""
    read = read_text(body, media, limits)
    if read.findings:
        return (), read.findings
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    several = len(read.documents) > 1
    for document in read.documents:
        found, said = _of_document(document, (document.number,) if several else ())
        manifests.extend(found)
        findings.extend(said)
    return _bounded(manifests, findings, limits)


def manifests_of(
    document: Document, pointer: str = "", limits: ManifestLimits = DEFAULT_LIMITS
) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    """The manifests below the JSON pointer `pointer` in a document, e.g. `/resources` of an apply body, and the
    findings, with their places in the document.
    """
    tree = document.tree
    path = path_of(pointer, tree)
    for part in path:
        if isinstance(tree, dict) and isinstance(part, str):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            tree = None
    found, said = _of_tree(tree, path, document.positions, 0)
    return _bounded(list(found), list(said), limits)


def _of_document(document: Document, prefix: Path) -> tuple[list[Manifest], list[Finding]]:
    return _of_tree(document.tree, prefix, document.positions, len(prefix))


def _of_tree(tree: Tree, path: Path, positions: Positions, skip: int) -> tuple[list[Manifest], list[Finding]]:
    manifests: list[Manifest] = []
    findings: list[Finding] = []
    whole = Manifest({}, path, positions, skip)
    for part in parts_of(tree):
        if isinstance(part, Part):
            manifests.append(Manifest(part.tree, path + part.path, positions, skip, part.notes))
        else:
            findings.append(whole.located(part.finding, part.path))
    return manifests, findings


def _bounded(
    manifests: list[Manifest], findings: list[Finding], limits: ManifestLimits
) -> tuple[tuple[Manifest, ...], tuple[Finding, ...]]:
    if len(manifests) > limits.max_resources:
        problem = f"holds {len(manifests)} resources"
        findings.append(TEXT_LIMIT.finding("", problem=problem, limit=f"{limits.max_resources} resources are"))
    if not manifests and not findings:
        findings.append(NOTHING_FOUND.finding(""))
    if has_errors(tuple(findings)):
        return (), tuple(findings)
    return tuple(manifests), tuple(findings)
