"""From a NACK to a named resource, an incident with impact and cause, and a quarantine in the catalogue.

`attribution` says whom a NACK blames, `fingerprint` which NACKs are one incident, `verdict` whether clients may roll a
fleet back: all three are pure. `services.digest` is the flow: facts in, incidents out; `tasks` is Celery's door to it.
"""
