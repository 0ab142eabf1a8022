"""Fault schedules, exact views and completion runs: for our tests and for those of another implementation."""
