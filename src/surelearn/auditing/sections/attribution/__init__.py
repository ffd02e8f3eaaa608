"""What the model's answers are made of: `work` runs, `words` is what the page says."""
