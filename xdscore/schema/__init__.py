"""Manifests: from what people write to the bytes clients read, and back. The only part of xdscore that uses protobuf.

    bytes --read_text--> Document --manifests_of--> Manifest --parse--> ParsedResource | Refused
             text.py                  manifest.py    |                    any_bytes, name, references, findings
             yaml_text, json_text     containers     |
                                                     +- wrapper: name and ttl of envoy.service.discovery.v3.Resource
                                                     +- convert: tree -> message, all errors of shape
                                                     |           (shapes, scalars, well_known)
                                                     +- rules: field rules of the API's own descriptors (rule_checks)
                                                     +- content: notices, dangers, certificates (traversal),
                                                     |           what does not go together (relations), what is
                                                     |           never used (never_used, shadowing)
                                                     +- references: which resources it needs

    any_bytes --to_json--> tree with <kept:HASH> for secrets --restore_kept--> Manifest        sensitive.py
    any_bytes --canonical--> the same bytes by this process's protobuf                         canonical.py

Pure: no I/O beyond reading descriptors once (types_registry), no Django, no clock. Nothing here raises for what a
text or a manifest holds: everything wrong is a `Finding` with code (`codes`), JSON pointer, line and column, all of
them at once. Equal input gives equal bytes, findings and order in every process.
"""

from xdscore.schema.canonical import canonical
from xdscore.schema.convert import ResourceLimits
from xdscore.schema.manifest import Manifest, manifests_of, read_manifests, read_text
from xdscore.schema.parse import Expected, ParsedResource, Refused, parse
from xdscore.schema.positions import NO_POSITIONS, Positions
from xdscore.schema.references import Reference
from xdscore.schema.sensitive import (
    KeyedHash,
    holds_secrets,
    may_hold_secrets,
    redact,
    restore_kept,
    secret_values,
    to_json,
    to_json_for_clients,
    to_json_with_secrets,
)
from xdscore.schema.text import Document, ManifestLimits, Media, TextRead, Tree

__all__ = [
    "NO_POSITIONS",
    "Document",
    "Expected",
    "KeyedHash",
    "Manifest",
    "ManifestLimits",
    "Media",
    "ParsedResource",
    "Positions",
    "Reference",
    "Refused",
    "ResourceLimits",
    "TextRead",
    "Tree",
    "canonical",
    "holds_secrets",
    "manifests_of",
    "may_hold_secrets",
    "parse",
    "read_manifests",
    "read_text",
    "redact",
    "restore_kept",
    "secret_values",
    "to_json",
    "to_json_for_clients",
    "to_json_with_secrets",
]
