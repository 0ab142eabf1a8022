"""A table in, a private histogram out."""
