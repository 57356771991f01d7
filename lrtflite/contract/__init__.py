"""The contract between a client and a bundle's models, and the golden session that tests it."""
