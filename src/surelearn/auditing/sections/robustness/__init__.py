"""What small changes of a row do: `work` runs, `words` is what the page says."""
