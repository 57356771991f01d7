"""The HTTP interface of a service, and its guard."""
