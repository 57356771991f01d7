"""Tables of named choices, and the plugins that add to them."""
