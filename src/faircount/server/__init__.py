"""The two servers of a survey: the coordinator (S1) and the aggregator (S2), with what both
share.
"""
