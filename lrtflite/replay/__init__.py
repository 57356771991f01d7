"""The replay memory: which latents it keeps (policies), in which form (codecs), where (store)."""
