"""The ways in which shares travel, one package each."""
