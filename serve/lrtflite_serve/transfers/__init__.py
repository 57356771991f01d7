"""States, bundles and models that are handed out, and states that are taken in."""
