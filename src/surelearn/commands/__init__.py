"""The commands, one a file; `surelearn.cli` gathers them."""
