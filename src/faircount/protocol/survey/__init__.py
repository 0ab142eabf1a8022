"""What a survey is: its parameters, invitations, states, what it promises and spends."""
