"""A participant's client: answer over the network, check whether it was counted, withdraw."""
