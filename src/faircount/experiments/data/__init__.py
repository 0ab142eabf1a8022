"""Who holds what: built-in counts, synthetic distributions, and loaders for the original files."""
