"""What `make demo` adds to `make run`: resources, an Envoy, backends, a gRPC client, and three calls that show what
they do.

Runs as one program beside the others (`python -m controlplane.ops.demo`); whatever it does to Parley goes through the
REST API.
"""
