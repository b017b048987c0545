"""Puts web, worker, beat and ADS together, and has the commands: the supervisor, the ADS process, demo data. The top of
the house: nothing but what a server loads by name imports it. The only room that imports adsserver.
"""
