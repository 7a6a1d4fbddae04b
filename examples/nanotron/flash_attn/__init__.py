"""Stands in for flash-attn 2.6 on phantom GPUs: the functions that nanotron calls, with the tensors that they allocate and keep. The
attention is PyTorch's own FlashAttention. Rotary embedding and RMS norm compute nothing, so they are of no use on a GPU."""
