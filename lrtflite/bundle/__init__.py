"""The bundle: manifest, feeding, rates, signature, and the folder that holds them."""
