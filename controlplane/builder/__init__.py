"""Catalogue and access in, snapshot out. `stages` are pure; `tasks` is Celery's door, `sweeper` the other."""
