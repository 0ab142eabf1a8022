"""Table I of the paper: what every party of a protocol draws, adds and sends."""
