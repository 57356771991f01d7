"""The replay memory: which latents are kept (policies), in which form (codecs) and where (stores)."""
