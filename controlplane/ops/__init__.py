"""Management commands: the supervisor, the ADS process, demo data. The only room that imports adsserver."""
