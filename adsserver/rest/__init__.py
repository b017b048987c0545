"""Discovery over REST: the HTTP port on which clients poll, in JSON (protocol.md section L). What a poll means is
decided elsewhere (`engine.poll`, `servicers.polls`); this room speaks HTTP and bounds whoever does.
"""
