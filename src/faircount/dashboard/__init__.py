"""The owner's dashboard: a page on the owner's own machine, beside the commands of `faircount survey`."""
