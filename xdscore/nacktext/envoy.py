r"""Envoy, whose texts have a grammar for each way to fail (clients.md sections 3 and 4).

- CDS and LDS say `Error adding/updating cluster(s) NAME: TEXT, NAME2: TEXT` and
  `Error adding/updating listener(s) NAME: TEXT\nNAME2: TEXT\n` (`named_list`). A cluster asked for on demand by its
  xdstp name: `Error adding/updating cluster NAME - NAME: TEXT` (source: od_cds_api_impl.cc of 1.40).
- A broken rule of a field: a dump of the resource, then `: Proto constraint validation failed (…)`. The dump says the
  name. A resource of another type: a dump of the whole response.
- `duplicate name NAME found among added/updated resources` (delta); `… in route NAME` (RDS, two domains alike).
- The rest names nobody. What Envoy logs of each rejected resource since 1.40 (`cds: cluster 'NAME' config rejected:
  TEXT`, envoyproxy/envoy#44664) goes into its log only: no NACK says it.
"""

from collections.abc import Callable

from xdscore.nacktext import envoy_dump
from xdscore.nacktext.named_list import Form, NamedList
from xdscore.nacktext.reading import NOBODY, Nack, Reading

_CLUSTERS = "Error adding/updating cluster(s) "
_CLUSTER_LIST = Form(separator=", ", behind_name=": ")
_LISTENERS = "Error adding/updating listener(s) "
_LISTENER_LIST = Form(separator="\n", behind_name=": ", end="\n")
_ON_DEMAND_CLUSTER = "Error adding/updating cluster "
_BEHIND_ON_DEMAND = " - "
_DUPLICATE = "duplicate name "
_DUPLICATE_ENDS = (" found among added/updated resources", " found in the union of added+removed resources")
_UNDECODABLE = "Unable to unpack as "
_ROUTE_DOMAINS = ("Only a single wildcard domain is permitted", "Only unique values for domains are permitted")
_IN_ROUTE = " in route "
# Texts that only Envoy writes, and that name nobody.
_NAMELESS = (
    "Error adding/updating scoped route(s)",
    "Error: filter config has type URL ",
    "Field '",
    "Invalid duration: ",
    "Protobuf message (type ",
    "malformed IP address: ",
    "route: unknown cluster ",
)


def recognises(nack: Nack) -> bool:
    """Whether the text has a form that only Envoy writes."""
    return _form(nack) is not _nobody or nack.text.startswith(_NAMELESS)


def read(nack: Nack) -> Reading:
    """The resources that the text blames, found by the reader for its form."""
    return _form(nack)(nack)


def _form(nack: Nack) -> Callable[[Nack], Reading]:
    """The function that reads texts of this form. Envoy's texts differ by what failed."""
    text = nack.text
    forms: tuple[tuple[bool, Callable[[Nack], Reading]], ...] = (
        (text.startswith(_CLUSTERS), _clusters),
        (text.startswith(_LISTENERS), _listeners),
        (text.startswith(_ON_DEMAND_CLUSTER), _on_demand_cluster),
        (text.startswith(_DUPLICATE) and text.endswith(_DUPLICATE_ENDS), _duplicate),
        (text.startswith(_UNDECODABLE), Nack.blame_unnamed),
        (text.startswith(_ROUTE_DOMAINS), _route_domains),
        (envoy_dump.is_of_resource(nack), envoy_dump.read_resource),
        (envoy_dump.is_of_response(nack), envoy_dump.read_response),
    )
    return next((form for applies, form in forms if applies), _nobody)


def _nobody(_nack: Nack) -> Reading:
    return NOBODY


def _clusters(nack: Nack) -> Reading:
    return NamedList(nack, _CLUSTER_LIST).read(len(_CLUSTERS))


def _listeners(nack: Nack) -> Reading:
    return NamedList(nack, _LISTENER_LIST).read(len(_LISTENERS))


def _on_demand_cluster(nack: Nack) -> Reading:
    """Read `Error adding/updating cluster NAME - NAME: TEXT`, which Envoy writes of a cluster that it asked for by its
    xdstp name.
    """
    start = len(_ON_DEMAND_CLUSTER)
    if nack.by_name.stops_inside(nack.text, start, _BEHIND_ON_DEMAND):
        return NOBODY
    return nack.blame(nack.by_name.longest_at(nack.text, start, _BEHIND_ON_DEMAND))


def _duplicate(nack: Nack) -> Reading:
    """Read `duplicate name NAME found among added/updated resources`, and the variant of it that also speaks of removed
    resources.
    """
    end = next(end for end in _DUPLICATE_ENDS if nack.text.endswith(end))
    if nack.by_name.stops_inside(nack.text, len(_DUPLICATE), end):
        return NOBODY
    return nack.blame(nack.text.removeprefix(_DUPLICATE).removesuffix(end))


def _route_domains(nack: Nack) -> Reading:
    """Read `Only unique values for domains are permitted. Duplicate entry of domain DOMAIN in route NAME`.

    NAME ends the text, and may be the beginning of another name. A text without Envoy's mark of a cut is taken to be
    whole: Envoy marks what it cuts, and these texts are far too short to be cut.
    """
    position = nack.text.find(_IN_ROUTE, max(0, len(nack.text) - nack.by_name.longest - len(_IN_ROUTE)))
    while position >= 0 and not nack.cut:
        reading = nack.blame(nack.text[position + len(_IN_ROUTE) :])
        if reading.slots:
            return reading
        position = nack.text.find(_IN_ROUTE, position + 1)
    return NOBODY
