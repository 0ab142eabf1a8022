"""Two servers hold one share each: a user answers once and leaves."""
