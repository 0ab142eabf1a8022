"""Shared by both servers: settings, authentication, HTTP helpers, metrics, request middleware."""
