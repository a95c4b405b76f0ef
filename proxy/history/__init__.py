"""History of statements: the decision, the outcome and the savings of each; no statement waits for it."""
