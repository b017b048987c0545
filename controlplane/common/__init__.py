"""What rooms have in common and none owns: how they say no, what stands for who acts, and what they may keep in mind
of things that never change. Imports no other room.
"""
