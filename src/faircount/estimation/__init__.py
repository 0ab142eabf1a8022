"""From opened sums to what a person can use: estimates, intervals, consistent frequencies, weights of groups."""
