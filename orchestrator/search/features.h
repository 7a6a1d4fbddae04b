// Features: the axes that differ between candidates, as numbers with a distance: a doubling of a number, or
// another word, is 1.
#pragma once
#include <vector>

#include "orchestrator/search/groups.h"

namespace sweep::search {

class Features {
 public:
  // Features of a group; the index is the place in it.
  Features(std::span<const Candidate>, const Group&);
  std::size_t size() const { return size_; }
  std::size_t axes() const { return is_word_.size(); }
  const std::string& name(std::size_t axis) const { return names_[axis]; }
  double distance(std::size_t axis, std::size_t a, std::size_t b) const {
    const double x = values_[axis][a], y = values_[axis][b];
    return is_word_[axis] ? (x == y ? 0 : 1) : (x > y ? x - y : y - x);
  }
  // Over all axes.
  double distance(std::size_t a, std::size_t b) const;

 private:
  void add_labels(std::span<const Candidate>);
  void add(const std::string& name, std::vector<double> values, bool is_word);

  std::size_t size_ = 0;
  std::vector<std::string> names_;
  std::vector<bool> is_word_;
  std::vector<std::vector<double>> values_;  // index: axis
};

}  // namespace sweep::search
