"""A client of xDS that does what gRFC A88 says: cache states, watchers, timers and resource errors, SotW and delta.

`engine` is its sans-I/O core and imports nothing of ours but `xdscore`.
"""
