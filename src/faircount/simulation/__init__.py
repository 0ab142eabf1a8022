"""Repeatable runs on made-up data: audits and sweeps."""
