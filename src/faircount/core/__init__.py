"""Errors, checks, the item list and sources of randomness: what every other room stands on."""
