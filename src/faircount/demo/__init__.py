"""A whole survey on one machine, in processes of its own: both servers and crowds of clients."""
