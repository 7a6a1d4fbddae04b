import torch


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight, torch.empty(x.shape[:-1], device=x.device, dtype=torch.float32))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx, gradient):
        x, weight, _ = ctx.saved_tensors
        gradient = gradient.contiguous()
        out = torch.empty_like(x)
        per_processor = torch.empty(torch.cuda.get_device_properties(x.device).multi_processor_count, x.shape[-1], device=x.device,
                                    dtype=torch.float32)
        return out, per_processor.sum(0).to(weight.dtype)


def layer_norm_fn(x, weight, bias, residual=None, eps=1e-6, dropout_p=0.0, prenorm=False, residual_in_fp32=False, is_rms_norm=False,
                  return_dropout_mask=False):
    if bias is not None or residual is not None or prenorm or not is_rms_norm:
        raise NotImplementedError("only nanotron's TritonRMSNorm is stood in for")
    return RmsNorm.apply(x, weight)
