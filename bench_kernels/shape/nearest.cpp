#include <algorithm>
#include <numeric>

#include "bench_kernels/shape/catalogue.h"

namespace sweep::shape {
namespace {

std::string lower_case(std::string_view word) {
  std::string out(word);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// "mbs" or "micro_batch" for "micro_batch_size".
bool abbreviates(std::string_view word, std::string_view name) {
  if (word.size() >= 2 && name.starts_with(std::string(word) + "_")) return true;
  std::string initials(name.substr(0, 1));
  for (std::size_t i = 1; i < name.size(); ++i)
    if (name[i - 1] == '_') initials += name[i];
  return initials.size() >= 2 && word == initials;
}

// Levenshtein distance, two rows.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;  // longer words are not typos; edit distance is quadratic
  if (word.empty() || word.size() > kLongest) return std::nullopt;
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  std::size_t best_distance = limit + 1;
  const std::string lower = lower_case(word);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongest) continue;
    const std::size_t distance = edit_distance(lower, lower_case(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  if (best) return best;
  for (const std::string& candidate : candidates)
    if (abbreviates(lower, lower_case(candidate))) return candidate;
  return std::nullopt;
}

}  // namespace sweep::shape
