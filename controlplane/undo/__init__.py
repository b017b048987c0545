"""Takes back one change, whatever it is about: who may, what it would do, and the write that does it.

What undoing means for resources and settings is said in `catalog`, for rules and groups in `access`, for a quarantine
in `incidents`; here is where a change is led to the one that knows.
"""
