"""The coordinator (S1) as a server: HTTP calls, deadlines, and the messages it owes the
aggregator.
"""
