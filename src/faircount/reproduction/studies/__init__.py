"""One module for every figure and table: points to run, their theory, and the paper's claims."""
