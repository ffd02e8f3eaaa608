"""The commands, one per file; `surelearn.cli` gathers them."""
