"""Every figure and table of the paper's Section IV: data, runs, report."""
