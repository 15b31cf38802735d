"""Reports as text and pictures: cards, tables, plots, terminal output."""
