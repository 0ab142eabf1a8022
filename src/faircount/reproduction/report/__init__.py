"""What `faircount reproduce` writes: pictures, CSV files and one HTML page."""
