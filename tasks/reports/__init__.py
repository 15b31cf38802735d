"""What people read: cards, tables, plots and lines, as text and pictures made of plain facts."""
