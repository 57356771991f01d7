"""The replay memory, with policies that choose latents, codecs that encode them, and a store."""
