"""Output on a terminal: progress, cautions, interrupts, results."""
