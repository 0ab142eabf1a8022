"""Fault schedules and exact views: for our tests and for those of another implementation."""
