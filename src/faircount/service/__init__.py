"""Shells around the protocol: S1 and S2 as servers, the network client of a user, the owner's files and commands."""
