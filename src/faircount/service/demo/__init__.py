"""A survey start to end over loopback, in processes of its own: both servers, and crowds of devices."""
