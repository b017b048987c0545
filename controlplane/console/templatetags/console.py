"""Tags and filters of the pages. Whatever they render is escaped by Django: no text of others is ever marked safe."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from itertools import zip_longest
from typing import Final

from django import template
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from controlplane.clients.foreign_text import escape
from controlplane.console.diffs import DiffLine, lines_of
from controlplane.console.lists import Toolbar, head_of
from controlplane.console.states import look_of
from controlplane.console.times import clock_text, iso_text, relative, zone_shown
from controlplane.discussion.linking import parts_of, shortened
from controlplane.listing.frames import TIMES_IN
from controlplane.status.sentence import Link, Piece, Sentence

register = template.Library()

_ARROWS: Final = {"ascending": "arrow-up", "descending": "arrow-down"}
# Outside of quotes: an even number of them stands before it.
_RULE: Final = re.compile(r"\b([Rr]ule \d{1,18})\b(?=(?:[^']*'[^']*')*[^']*$)")


@register.simple_tag
@lru_cache(maxsize=256)  # a long table has the same few hundreds of times
def icon(name: str) -> SafeString:
    """The SVG of an icon, by its name in the sprite. Screen readers skip it, so a word must stand beside it."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>', static("vendor/icons.svg"), name
    )


@register.simple_tag
def state(value: object, label: str = "") -> SafeString:
    """A badge with icon, word and colour for a key of `states.LOOKS`; `label` replaces the word."""
    return _badge(str(value.value if isinstance(value, Enum) else value), label)


@lru_cache(maxsize=256)
def _badge(key: str, label: str) -> SafeString:
    look = look_of(key)
    return format_html(
        '<span class="state state-{}">{}<span>{}</span></span>', look.tone, icon(look.icon), label or look.label
    )


@register.simple_tag
def moment(value: datetime | None, *, brief: bool = False) -> SafeString:
    """A time in words ("3 minutes ago") and as date and time in the reader's zone; with `brief`, date and time only as
    a tooltip. The tooltip has it in UTC, too.
    """
    if value is None:
        return format_html('<span class="quiet">{}</span>', "never")
    here, utc = clock_text(value, seconds=True), clock_text(value, seconds=True, zone=UTC)
    exact = here if here == utc else f"{here}, {utc}"
    words = relative(value, timezone.now())
    ago = format_html('<time datetime="{}" title="{}" data-relative>{}</time>', iso_text(value), exact, words)
    if brief:
        return ago
    return format_html('{} <span class="quiet text-nowrap">{}</span>', ago, clock(value, seconds=True))


@register.simple_tag
def clock(value: datetime | None, *, seconds: bool = False) -> SafeString:
    """A time as date and time in the reader's zone, to the minute or to the second. In UTC it stands in the tooltip
    and, for readers of screens, behind it.
    """
    if value is None:
        return format_html('<span class="quiet">{}</span>', "never")
    here, utc = clock_text(value, seconds=seconds), clock_text(value, seconds=seconds, zone=UTC)
    if here == utc:
        return format_html('<time datetime="{}">{}</time>', iso_text(value), here)
    return format_html(
        '<time datetime="{}" title="{}">{}<span class="visually-hidden"> ({})</span></time>',
        iso_text(value),
        utc,
        here,
        utc,
    )


@register.simple_tag
def times_in(given: Mapping[str, str] | None = None) -> SafeString:
    """The hidden field of a form that says in which zone its times are meant: that of this page or, where the form is
    shown again (`given`), that of then.
    """
    zone = (given or {}).get(TIMES_IN) or zone_shown()
    return format_html('<input type="hidden" name="{}" value="{}">', TIMES_IN, zone)


@register.simple_tag
def sentence(said: Sentence) -> SafeString:
    """A sentence about an environment, in which changes, incidents and rollouts are links, and times as elsewhere."""
    return format_html_join("", "{}", ((_piece(each),) for each in said.pieces))


def _piece(piece: Piece) -> str:
    if isinstance(piece, Link):
        return format_html('<a href="{}">{}</a>', reverse(piece.about.value, args=[piece.id]), visible(piece.text))
    return moment(piece, brief=True) if isinstance(piece, datetime) else visible(piece)


@register.simple_tag
def column(bar: Toolbar, word: str, label: str, kind: str = "") -> SafeString:
    """The head of a column by which the list under a toolbar can be sorted: a link, and which way it is sorted now.
    `kind`: a class of the column, such as `number`.
    """
    head = head_of(bar.asked, word)
    arrow = icon(_ARROWS[head.state]) if head.state else ""
    state = format_html(' aria-sort="{}"', head.state) if head.state else ""
    look = format_html(' class="{}"', kind) if kind else ""
    return format_html(
        '<th scope="col"{}{}><a class="sort" href="?{}">{}{}</a></th>', look, state, head.query, label, arrow
    )


@register.simple_tag
def copy(text: str, label: str = "Copy") -> SafeString:
    """A button that copies a text to the clipboard; browsers without scripts do not show it."""
    return format_html(
        '<button type="button" class="btn btn-sm btn-copy" data-copy="{}" hidden>{}<span>{}</span></button>',
        text,
        icon("copy"),
        label,
    )


@register.filter
def diff_lines(text: str) -> Sequence[DiffLine]:
    """The lines of a unified difference; each says whether it is added, removed or the same."""
    return lines_of(text)


@register.filter
def short(identifier: object) -> str:
    """The first part of a UUID or hash, by which people tell two apart."""
    return str(identifier)[:8]


@register.simple_tag(takes_context=True)
def current_path(context: template.Context) -> str:
    """The path of the page that is shown, with its query."""
    return str(context["request"].get_full_path())


@register.simple_tag(takes_context=True)
def author(context: template.Context, name: str) -> SafeString:
    """The name of who did something. Where it is a token's, and the reader administers the environment, a link to the
    token.
    """
    token = name.removeprefix("token:")
    if token == name or not context.get("may_administer"):
        return format_html('<b class="foreign">{}</b>', visible(name))
    url = f"{reverse('tokens')}?{urlencode({'text': token})}"
    return format_html('<a href="{}"><b class="foreign">{}</b></a>', url, visible(name))


@register.simple_tag
def rules_linked(text: object, environment_key: str) -> SafeString:
    """A sentence of Parley in which "rule 1" becomes a link to the rule. Not within quotes, where texts of others
    stand.
    """
    rules = reverse("access", args=[environment_key])
    parts = _RULE.split(visible(text))
    found = ((part, f"{rules}#rule-{part.split()[1]}") for part in parts[1::2])
    linked = [format_html('<a href="{}">{}</a>', url, part) for part, url in found]
    return format_html_join("", "{}{}", zip_longest(parts[0::2], linked, fillvalue=""))


@register.simple_tag(takes_context=True)
def linked(context: template.Context, text: object, chars: int = 0) -> SafeString:
    """A text written by others, made visible, in which addresses and words for tickets are links. The page's
    `tickets` says which words; `chars`: how many characters of it are shown, 0 for all.
    """
    said = str(text)
    # Which words are known is read once for a page, and not where no text has a number.
    tickets = tuple(context.get("tickets") or ()) if any(each.isdigit() for each in said) else ()
    parts = parts_of(said, tickets)
    found = (
        format_html('<a href="{}" rel="noopener noreferrer nofollow">{}</a>', part.url, visible(part.text))
        if part.url
        else visible(part.text)
        for part in (shortened(parts, chars) if chars else parts)
    )
    return format_html_join("", "{}", ((each,) for each in found))


@register.filter
def visible(text: object) -> str:
    """A text written by others in which control characters, and characters that turn the direction of text, are
    escaped.
    """
    return escape(str(text), keep="\n\t")
