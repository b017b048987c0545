"""One module per noun. Each has `register`, which adds its commands to the tree, and `HELP_POSITION`, which says where
among the others they are listed. A module is found by being here.
"""
