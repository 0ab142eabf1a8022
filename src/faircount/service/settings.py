"""Limits and settings of the servers."""

MOST_EXTENSION = 366 * 24 * 3600
"""Seconds by which a phase can be extended at once."""

MOST_BETWEEN_SERVERS = 256 * 1024 * 1024
"""Bytes of the longest message from S1 to S2."""
