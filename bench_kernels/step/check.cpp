#include "bench_kernels/step/check.h"

#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "bench_kernels/model/stage.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/step/safetensors.h"
#include "schema/codec.h"
#include "schema/spool.h"

namespace sweep::step {

namespace {

namespace fs = std::filesystem;

struct Sequences {
  i64 length = 0;  // of the inputs
  std::vector<i64> inputs, labels;
};

Expected<Sequences> read_tokens(const fs::path& file, i64 vocab) {
  const auto text = spool::read_file(file);
  if (!text) return tl::unexpected(text.error());
  const auto json = parse_json(*text);
  if (!json) return fail(file.string() + ": " + json.error().message + ".");
  const auto wrong = [&](const std::string& why) { return fail(file.string() + ": " + why); };
  if (!json->is_array() || json->empty()) return wrong("a list of token lists is needed.");
  Sequences s;
  for (const auto& row : *json) {
    if (!row.is_array() || row.size() < 2) return wrong("each sequence is a list of at least two tokens.");
    if (s.length == 0) s.length = static_cast<i64>(row.size()) - 1;
    if (static_cast<i64>(row.size()) - 1 != s.length) return wrong("all sequences must be equally long.");
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].is_number_unsigned() || row[i].get<std::uint64_t>() >= static_cast<std::uint64_t>(vocab)) {
        return wrong("tokens are whole numbers from 0 to " + std::to_string(vocab - 1) + ", not " +
                     dump(row[i]) + ".");
      }
      if (i + 1 < row.size()) s.inputs.push_back(row[i].get<i64>());
      if (i > 0) s.labels.push_back(row[i].get<i64>());
    }
  }
  return s;
}

at::Tensor tensor_of(std::vector<i64>& values) {
  return at::from_blob(values.data(), {static_cast<i64>(values.size())}, at::kLong).clone();
}

}  // namespace

Expected<std::string> check(const fs::path& checkpoint_dir, const fs::path& tokens_json) {
  const auto config = spool::read_file(checkpoint_dir / "config.json");
  if (!config) return tl::unexpected(config.error());
  const auto spec = shape::model_from_config_json(*config);
  if (!spec) return fail((checkpoint_dir / "config.json").string() + ": " + spec.error().message);
  auto sequences = read_tokens(tokens_json, spec->vocab_size);
  if (!sequences) return tl::unexpected(sequences.error());
  if (!spec->rope && sequences->length > spec->max_positions) {
    return fail(tokens_json.string() + ": sequences of " + std::to_string(sequences->length) +
                " tokens exceed the model's " + std::to_string(spec->max_positions) + " positions.");
  }
  model::Options options;
  options.seq_len = sequences->length;
  model::AloneLayout layout;
  model::Stage stage(*spec, options, layout.value(), {0, spec->layers, true, true});
  model::Parameters& parameters = stage.parameters();
  parameters.layout({at::TensorOptions(options.type)});
  const auto names = load_weights(checkpoint_dir, parameters);
  if (!names) return tl::unexpected(names.error());

  parameters.allocate_gradients();
  const model::MicroStep micro{tensor_of(sequences->inputs), tensor_of(sequences->labels), 1.0,
                               at::zeros({1}, at::kDouble)};
  model::Stage::Tape tape;
  stage.forward(micro, {}, tape);
  stage.backward(micro, {}, std::move(tape));

  nlohmann::json norms = nlohmann::json::object();
  for (const auto& named : parameters.all())
    norms[names->at(named.name)] = parameters.gradient(named).to(at::kDouble).norm().item<double>();
  return dump({{"loss", micro.total.item<double>() / static_cast<double>(sequences->labels.size())},
               {"grad_norms", norms}});
}

}  // namespace sweep::step
