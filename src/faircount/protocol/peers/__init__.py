"""What the topologies share in which users hold the shares."""
