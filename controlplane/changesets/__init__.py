"""Change sets: what somebody proposes to write, what others say of it, and when it is published (interfaces.md section
8, "Change sets").
"""
