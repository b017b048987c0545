"""What a new resource of a type looks like: a text to begin with, small, sound, and to be changed. Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

from xdscore.resource_types import by_word

_ENVOY: Final = "type.googleapis.com/envoy"

# So many names are looked for at once.
_TRIED: Final = 50


@dataclass(frozen=True, slots=True)
class Starter:
    """An example manifest from which a new resource of this type can be made, with the name in it."""

    word: str
    name: str
    text: str

    def free(self, taken: Callable[[Sequence[str]], Collection[str]]) -> str:
        """The text with the first of the names `pay`, `pay-2`, `pay-3`, … that is free. `taken`: returns those of some
        names that are taken.
        """
        field = by_word[self.word].name_field
        start = 1
        while True:
            names = [self.name if number == 1 else f"{self.name}-{number}" for number in range(start, start + _TRIED)]
            there = taken(names)
            for name in names:
                if name not in there:
                    return self.text.replace(f"\n{field}: {self.name}\n", f"\n{field}: {name}\n", 1)
            start += _TRIED


_TEXTS: Final[dict[str, str]] = {
    "cluster": f"""\
"@type": {_ENVOY}.config.cluster.v3.Cluster
name: pay
type: EDS
connect_timeout: 1s
eds_cluster_config:
  eds_config:
    ads: {{}}
    resource_api_version: V3
""",
    "endpoint": f"""\
"@type": {_ENVOY}.config.endpoint.v3.ClusterLoadAssignment
cluster_name: pay
endpoints:
- locality: {{region: local}}
  load_balancing_weight: 1
  lb_endpoints:
  - load_balancing_weight: 1
    endpoint:
      address:
        socket_address: {{address: 192.0.2.10, port_value: 8080}}
""",
    "route": f"""\
"@type": {_ENVOY}.config.route.v3.RouteConfiguration
name: edge
virtual_hosts:
- name: all
  domains: ["*"]
  routes:
  - match: {{prefix: /}}
    route: {{cluster: pay}}
""",
    "listener": f"""\
"@type": {_ENVOY}.config.listener.v3.Listener
name: ingress
address:
  socket_address: {{address: 0.0.0.0, port_value: 8080}}
filter_chains:
- filters:
  - name: envoy.filters.network.http_connection_manager
    typed_config:
      "@type": {_ENVOY}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
      stat_prefix: ingress
      rds:
        route_config_name: edge
        config_source:
          ads: {{}}
          resource_api_version: V3
      http_filters:
      - name: envoy.filters.http.router
        typed_config:
          "@type": {_ENVOY}.extensions.filters.http.router.v3.Router
""",
    "secret": f"""\
"@type": {_ENVOY}.extensions.transport_sockets.tls.v3.Secret
name: api-key
generic_secret:
  secret:
    inline_string: put the value here
""",
}

STARTERS: Final[dict[str, Starter]] = {
    word: Starter(word, name, _TEXTS[word])
    for word, name in (
        ("cluster", "pay"),
        ("endpoint", "pay"),
        ("route", "edge"),
        ("listener", "ingress"),
        ("secret", "api-key"),
    )
}
