"""Reproductions of published numbers, with the misprints and conjectures that are needed to meet them."""
