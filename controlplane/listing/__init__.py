"""What a list can be asked, and the views of lists that people keep.

`frames` reads filters and an order from the query of an address, `tables` writes what a list shows as CSV and JSON:
both are pure. A view is such a query under a name, and shows nobody more than the list does.
"""
