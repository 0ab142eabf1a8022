"""Where the servers keep what they must not lose: one interface, on SQLite or on PostgreSQL.

database   transactions on either; `connect(url)` opens one and refuses a schema that it does not know
keys       keys of rows, outside the database: destroying one makes its rows unreadable, in backups too
anchor     the few values that no restore takes back
states     a state of the protocol as one sealed head and its sealed rows
"""
