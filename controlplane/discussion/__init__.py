"""What people say of changes, incidents and resources, and which words in it lead to tickets.

`mentions` finds whom a text mentions, `linking` what of it becomes a link: both are pure. A comment belongs to its
subject: who may see that may read it, and it goes with it.
"""
