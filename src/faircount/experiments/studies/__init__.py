"""The figures and tables of the paper, one module each: points to run, theory, and what the paper says of them."""
