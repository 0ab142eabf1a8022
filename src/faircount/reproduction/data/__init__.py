"""The populations that users are drawn from: built-in counts, distributions, original files."""
