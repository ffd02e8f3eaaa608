"""The perceptron: `learner` fits, `passes` goes over the rows."""
