// Qwen 2 and 2.5: a Llama with biases on query, key and value.
#include "bench_kernels/shape/config_reader.h"
#include "bench_kernels/shape/family.h"

namespace sweep::shape::families {

extern const Family kQwen2{
    .name = "qwen2",
    .architecture = "Qwen2ForCausalLM",
    .read = [](ConfigReader& r, ModelSpec& m) { read_qwen(r, m, 32); },
    .attention_bias = true,
};

}  // namespace sweep::shape::families
