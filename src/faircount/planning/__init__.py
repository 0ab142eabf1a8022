"""What is possible with so many users: every mechanism at equal exact privacy."""
