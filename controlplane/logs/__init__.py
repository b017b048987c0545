"""What a process says: each event is one line, as JSON or for people, whoever wrote it. Imports nothing here, and no
other room: it works before there is a configuration.
"""
