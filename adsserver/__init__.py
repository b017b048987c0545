"""The ADS server: what data planes hear. `engine` decides, everything else carries.

`engine` is the sans-I/O protocol core; `wire` turns bytes into its events and its effects into bytes; `identity` says
who calls and `limits` what they may cost; `servicers` are the gRPC streams; `store` is the only door to the control
plane's database; `running` is a process, or several; `main` wires the objects together.
"""
