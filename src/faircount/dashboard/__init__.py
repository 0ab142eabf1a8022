"""The owner's dashboard: a page on the owner's own computer, on top of `faircount survey`."""
