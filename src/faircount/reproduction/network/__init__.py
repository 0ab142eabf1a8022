"""Figure 4 and Table II through whole surveys: real servers, HTTP on loopback, every client."""
