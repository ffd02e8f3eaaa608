"""Whether the model gives its fit rows away: `work` runs, `epsilon` is about privacy, `words`
is what the page says.
"""
