"""What `reproduce` writes: figures, CSV files and one HTML page."""
