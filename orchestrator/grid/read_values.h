// ValueReader: YAML nodes -> checked axis values. Owns the forms a value may take (single, list, pow2, range;
// models by name, config.json or dimensions) and refuses every value that is not one of its axis.
#pragma once
#include <filesystem>
#include <map>
#include <span>

#include "orchestrator/grid/spec.h"

namespace sweep::grid {

inline constexpr std::size_t kMaxAxisValues = 1'000'000;
inline constexpr std::size_t kMaxModels = 1000;
inline constexpr i64 kMaxDimension = i64{1} << 40;  // shape::completed() knows the true bounds of each

// The least value that a grid may give to a dimension of a model.
i64 least_dimension(std::string_view key);

// Refuses keys that are not known, naming the nearest.
Status check_keys(const Document&, const Node& map, std::span<const std::string_view> known,
                  std::string_view where);
// Refuses anything but a map (list).
Status need_map(const Document&, const Node&, Place at, std::string_view what);
Status need_list(const Document&, const Node&, std::string_view what);

Expected<i64> read_int(const Document&, const Node&, std::string_view what, i64 min, i64 max);
Expected<double> read_real(const Document&, const Node&, std::string_view what, double min, double max);
Expected<bool> read_flag(const Document&, const Node&, std::string_view what);
Expected<std::string> read_word(const Document&, const Node&, std::string_view what,
                                std::size_t max_bytes = 256);

class ValueReader {
 public:
  ValueReader(const Document& document, GridSpec& spec, std::filesystem::path folder)
      : document_(document), spec_(spec), folder_(std::move(folder)) {}

  // The slot of an axis name (or `model`); unknown: an error that names the nearest.
  Expected<Slot> axis(const Entry&, std::string_view section) const;
  // All values of one axis as a Dimension of its own slots (a model brings its dimensions).
  Expected<Dimension> many(const Node&, Slot);
  Expected<Dimension> one(const Node&, Slot);

 private:
  // Values without their slots, unless they are models.
  Expected<Dimension> many(const Node&, const Symbol&);
  Status append(const Node&, const Symbol&, Dimension&);
  Status append_range(const Node&, const Symbol&, Dimension&);
  Status append_pow2(const Node&, const Symbol&, Dimension&);
  Expected<std::pair<i64, i64>> bounds(const Entry&, const Symbol&, std::size_t numbers) const;
  Expected<Cell> cell(const Node&, const Symbol&);
  Expected<std::string> lengths_file(const Node&, const std::filesystem::path&) const;  // its text
  Expected<std::string> lengths(const Node&) const;
  Expected<i64> percentile(const Node&) const;
  Expected<std::string> variables(const Node&) const;
  // The dimensions of a model's map that list several values, and which value of each is meant.
  using Picks = std::map<std::string, i64, std::less<>>;
  Status append_model(const Node&, Dimension&);
  Status append_model(const Node&, const Picks&, Dimension&);
  Expected<ModelEntry> model_by_name(const Node&);
  struct Start {
    ModelSpec spec;
    std::string label;   // empty: none
    bool given = false;  // base or config_json gave a model
  };
  Expected<ModelEntry> named_model(const std::string& name, Place);
  Expected<ModelEntry> model_from_map(const Node&, const Picks&);
  Expected<Start> start_of(const Node&);
  Status set_dimension(const Entry&, const Picks&, ModelSpec&);
  Expected<ModelSpec> config(const std::filesystem::path&, Place);
  Status remember(const ModelEntry&, Place);
  std::string label_of(const ModelSpec&) const;

  const Document& document_;
  GridSpec& spec_;
  std::filesystem::path folder_;                     // paths of config.json and lengths are relative to it
  std::map<std::filesystem::path, ModelSpec> read_;  // config.json files read so far
};

// Joins two wheels that move together; both have the same count.
void join(Dimension& into, const Dimension& other);

}  // namespace sweep::grid
