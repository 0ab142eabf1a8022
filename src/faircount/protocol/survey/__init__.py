"""What a survey is: parameters, invitations, phases, endings, guarantees and privacy budget."""
