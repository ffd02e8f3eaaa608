"""What poisoned training rows would do: `work` runs, `influence` ranks rows, `words` is what
the page says.
"""
