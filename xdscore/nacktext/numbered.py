"""The list that gRPC C-core and gRPC-Node write: `xDS response validation errors: [resource index N: TEXT; …]`.

`; resource index 3: ` inside a name or a text is no entry. So a name is skipped whole, also where the text was cut
inside it, and an entry counts only if its index is that of a resource and not below the one before, and if what follows
fits the dialect.

C-core also complains about error entries of xRFC TP3: `resource_errors index N: NAME: TEXT`. NAME is then what the
server said an error about, and no culprit, even where the response holds a resource of that name.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from xdscore.nacktext.reading import NOBODY, Nack, Reading

_HEADER = "xDS response validation errors: ["
# Nine digits are more than any response has resources, and few enough to be a number cheaply.
_ENTRY = re.compile(r"resource(_errors)? index ([0-9]{1,9}): ")
_SEPARATOR = re.compile(r"; (?=resource(?:_errors)? index [0-9]{1,9}: )")
_ERRORS_OPENING = _HEADER + "resource_errors index "
_CUT_INDEX = re.compile(r"[0-9]{0,9}:?")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry `resource index N: …` of a NACK's text. `body`, `end_of_name`: offsets in the text.

    found: whether there is an entry at all.
    about_errors: whether it is about an entry of `resource_errors`, and so blames no resource.
    slot: the index that it says.
    body: where its text starts, behind the index.
    name: the name of the resource at that index, if `body` starts with it.
    end_of_name: where to look for the next entry from; nothing inside a name counts.
    stops_inside_name: whether the text ends inside the name.
    """

    found: bool
    about_errors: bool = False
    slot: int = -1
    body: int = 0
    name: str = ""
    end_of_name: int = 0
    stops_inside_name: bool = False


def stops_before_subject(nack: Nack) -> bool:
    """Whether the text was cut so early that it may be about an entry of `resource_errors` as well as about a resource.

    Such a text, also an empty one, blames nothing, not even the only resource of the response.
    """
    if nack.text.startswith(_ERRORS_OPENING):
        return _CUT_INDEX.fullmatch(nack.text, len(_ERRORS_OPENING)) is not None
    return _ERRORS_OPENING.startswith(nack.text)


def first_entry(nack: Nack) -> Entry:
    """The entry right behind the header; one that is not `found` when the text has another beginning."""
    return _entry_at(nack, len(_HEADER)) if nack.text.startswith(_HEADER) else Entry(found=False)


def read(nack: Nack, fits: Callable[[Nack, Entry], bool]) -> Reading:
    """The resources that a numbered list blames. `fits` says whether the client family can have written an entry like
    this one.

    The first entry is not checked by `fits`: it stands behind the header, where no name or text can have forged it.
    """
    entry = first_entry(nack)
    if not entry.found:
        return NOBODY
    walk = _Walk(resources=len(nack.names))
    complete = walk.take(entry) and not nack.cut and nack.text.endswith("]")
    position = entry.end_of_name
    while (separator := _SEPARATOR.search(nack.text, position)) is not None:
        following = _entry_at(nack, separator.end())
        position = separator.end()
        if following.stops_inside_name:
            complete = False
            break
        if fits(nack, following) and walk.take(following):
            position = following.end_of_name
        else:
            complete = False
    return Reading(tuple(walk.slots), complete, walk.elsewhere)


@dataclass(slots=True)
class _Walk:
    """How far the client had gone through the response when it wrote an entry: first through the resources in order,
    then through `resource_errors`.

    slots: the indexes blamed so far.
    elsewhere: whether an entry blames something that is no resource of the response.
    """

    resources: int
    slots: list[int] = field(default_factory=list)
    elsewhere: bool = False
    in_errors: bool = False

    def take(self, entry: Entry) -> bool:
        """If a client that wrote the entries before can have written this one, note what it blames and return True;
        else return False.
        """
        if entry.about_errors:
            self.in_errors = self.elsewhere = True
            return True
        if entry.slot >= self.resources:
            self.elsewhere = True
            return False
        if self.in_errors or (self.slots and entry.slot < self.slots[-1]):
            return False
        # C-core says twice what can neither be decoded nor named (source: xds_client.cc, ParseResource).
        if not self.slots or entry.slot > self.slots[-1]:
            self.slots.append(entry.slot)
        return True


def _entry_at(nack: Nack, position: int) -> Entry:
    head = _ENTRY.match(nack.text, position)
    if head is None:
        return Entry(found=False)
    slot, body = int(head[2]), head.end()
    if head[1]:
        return Entry(found=True, about_errors=True, body=body, end_of_name=body)
    name = nack.names[slot] if slot < len(nack.names) else ""
    if name == "":
        return Entry(found=True, slot=slot, body=body, end_of_name=body)
    if nack.text.startswith(name + ": ", body):
        return Entry(found=True, slot=slot, body=body, name=name, end_of_name=body + len(name))
    stops = body < len(nack.text) <= body + len(name) + 1 and (name + ": ").startswith(nack.text[body:])
    return Entry(
        found=True, slot=slot, body=body, end_of_name=len(nack.text) if stops else body, stops_inside_name=stops
    )
