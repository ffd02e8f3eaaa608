"""Support vector machines: `learner` fits, `machine` calls the solvers, `dual`, `passes` and
`interior` are ours, `optimality` proves the gap, `separation` finds the margin.
"""
