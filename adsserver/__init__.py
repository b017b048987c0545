"""The ADS server: what data planes hear. `engine` decides, everything else carries.

`engine` is the sans-I/O protocol core; `wire` turns bytes into its events and its effects into bytes; `servicers` are
the gRPC streams; `store` is the only door to the control plane's database; `main` wires the objects together.
"""
