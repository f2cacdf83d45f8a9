"""How good a model is: metrics over probabilities, whichever engine gave them."""
