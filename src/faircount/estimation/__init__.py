"""From decoded sums to results: estimates, intervals, consistent frequencies, weights of groups."""
