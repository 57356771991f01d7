"""The page of a device and its HTTP interface: teach by showing, from a browser or a program."""
