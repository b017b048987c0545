"""What a new resource of a type looks like: a text to begin with, small, sound, and to be changed."""

from typing import Final

_ENVOY: Final = "type.googleapis.com/envoy"

STARTERS: Final[dict[str, str]] = {
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
