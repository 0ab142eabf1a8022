"""What the two servers do in every topology."""
