"""Privacy as numbers: guarantees as values, exact divergences, the paper's theorems, composition, audit."""
