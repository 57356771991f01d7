"""Files on disk: hostile reads within limits, all-or-nothing writes."""
