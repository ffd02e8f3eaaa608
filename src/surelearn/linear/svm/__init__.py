"""Support vector machines: `learner` fits, `machine` calls the solvers, `dual` finds the gap, `separation` the margin."""
