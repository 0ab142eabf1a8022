"""Many seeded runs of one task, on one machine or on a Dask cluster."""
