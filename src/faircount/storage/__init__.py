"""Where the servers keep what they must not lose: one interface, on SQLite or on PostgreSQL.

database   transactions on either; `connect(url)` opens one and refuses an unknown schema
keys       keys of rows, outside the database: without its key a row is unreadable, in backups too
anchor     the few values that no restore takes back
states     a state of the protocol as one encrypted main row and its encrypted rows
"""
