"""The aggregator (S2) as a server: HTTP calls, and steps that are anchored and written before
they are answered.
"""
