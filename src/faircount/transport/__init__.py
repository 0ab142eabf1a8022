"""Outgoing HTTP: the one place through which servers, clients and owners call a server."""
