"""Which descriptors this installation reads and writes by: those that Parley brings along, and the sets that operators
added. The sets are rows of the database, so that every process has the same; `following` makes one use them.
"""
