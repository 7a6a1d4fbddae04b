import torch


class VarlenAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, starts_q, starts_k, longest_q, longest_k, causal, scale):
        out, logsumexp, seed, offset, _ = torch.ops.aten._flash_attention_forward(
            q, k, v, starts_q, starts_k, longest_q, longest_k, 0.0, causal, False, scale=scale)
        ctx.save_for_backward(q, k, v, out, logsumexp, starts_q, starts_k, seed, offset)
        ctx.shape = longest_q, longest_k, causal, scale
        return out

    @staticmethod
    def backward(ctx, gradient):
        q, k, v, out, logsumexp, starts_q, starts_k, seed, offset = ctx.saved_tensors
        longest_q, longest_k, causal, scale = ctx.shape
        gradients = torch.ops.aten._flash_attention_backward(
            gradient.contiguous(), q, k, v, out, logsumexp, starts_q, starts_k, longest_q, longest_k, 0.0, causal, seed, offset, scale=scale)
        return (*gradients, None, None, None, None, None, None)


def flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None, causal=False,
                           return_attn_probs=False):
    return VarlenAttention.apply(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal, softmax_scale)


def flash_attn_with_kvcache(*_, **__):
    raise NotImplementedError("generation is not stood in for")
