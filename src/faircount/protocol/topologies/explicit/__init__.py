"""Users hold the shares of each other's answers, as printed in Algorithm 2."""
