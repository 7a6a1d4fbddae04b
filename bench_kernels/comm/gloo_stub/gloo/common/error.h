// Stands for Gloo's errors, which LibTorch's headers include and this program does not use.
#pragma once
