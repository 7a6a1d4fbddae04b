#include "worker/command/trainer_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "schema/codec.h"

namespace sweep::command {
namespace {

using nlohmann::json;

constexpr double kLongestMs = 1e12;
constexpr std::size_t kLongestMessage = 4000;
constexpr i64 kVersion = 1;

}  // namespace

// Reads optional members of one line; a member of the wrong type or out of range makes the whole line
// damaged.
class TrainerReport::Members {
 public:
  explicit Members(const json& line) : line_(line) {}

  void milliseconds(const char* key, std::optional<double>& to) {
    number(key, to);
    if (to && (*to < 0 || *to > kLongestMs)) bad_ = true;
  }
  void number(const char* key, std::optional<double>& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number()) return void(bad_ = true);
    to = value->get<double>();
    if (!std::isfinite(*to)) bad_ = true;
  }
  void count(const char* key, std::optional<i64>& to) {
    const json* value = find(key);
    if (value == nullptr) return;
    // 2048.0 is a count too: JSON does not tell the two apart, and a mean of Python is a float.
    constexpr double kLargest = 4e18;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (number < 0 || number > kLargest || number != std::floor(number)) return void(bad_ = true);
    to = value->is_number_float() ? static_cast<i64>(number) : value->get<i64>();
  }
  std::string text(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return "";
    if (!value->is_string()) return bad_ = true, "";
    return value->get<std::string>();
  }
  bool flag(const char* key) {
    const json* value = find(key);
    if (value == nullptr) return false;
    if (!value->is_boolean()) bad_ = true;
    return value->is_boolean() && value->get<bool>();
  }
  bool fine() const { return !bad_; }

 private:
  const json* find(const char* key) const {
    const auto at = line_.find(key);
    return at == line_.end() || at->is_null() ? nullptr : &*at;
  }
  const json& line_;
  bool bad_ = false;
};

namespace {

bool is_step_phase(std::string_view name) {
  return name == "init" || name == "build" || name == "first_step" || name == "report";
}

}  // namespace

std::optional<TrainerError> TrainerReport::error_from(Members& in) {
  TrainerError out;
  const auto outcome = outcome_from(in.text("outcome"));
  if (!outcome) return std::nullopt;
  out.outcome = *outcome;
  if (out.outcome != Outcome::kCrash && out.outcome != Outcome::kOom && out.outcome != Outcome::kUnsupported)
    return std::nullopt;
  if (out.outcome == Outcome::kOom) {
    const std::string where = in.text("oom");
    out.oom_kind = where.empty() ? OomKind::kDevice : oom_kind_from(where);
    if (!out.oom_kind) return std::nullopt;
  }
  in.count("asked_bytes", out.asked_bytes);
  in.count("unix_ns", out.unix_ns);
  out.part = in.text("part").substr(0, 40);
  const std::string type = in.text("type"), message = in.text("message");
  out.message =
      (type.empty() || message.empty() ? type + message : type + ": " + message).substr(0, kLongestMessage);
  out.consequential = in.flag("consequential");
  return in.fine() ? std::optional(std::move(out)) : std::nullopt;
}

void TrainerReport::feed(std::string_view bytes) {
  cutter_.feed(bytes, [this](std::optional<std::string_view> text) {
    if (text) return line(*text);
    ++lines_;
    ++damaged_;
  });
}

void TrainerReport::add_logged(TrainerStep step) {
  if (last_step_ > 0 && !log_.steps) return;
  log_.steps = add_step(step) || log_.steps;
}

void TrainerReport::set_logged_run(std::optional<TrainerStep> mean_step,
                                   std::optional<i64> peak_reserved_bytes) {
  log_.mean_step = mean_step;
  log_.peak_reserved_bytes = peak_reserved_bytes;
}

TrainerReport::Memory TrainerReport::memory() const {
  Memory out = memory_;
  if (!out.peak_reserved_bytes) out.peak_reserved_bytes = log_.peak_reserved_bytes;
  return out;
}

void TrainerReport::line(std::string_view text) {
  if (text.empty()) return;
  ++lines_;
  if (!understand(text)) ++damaged_;
}

bool TrainerReport::understand(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed || !parsed->is_object()) return false;
  Members in(*parsed);
  std::optional<i64> version;
  in.count("v", version);
  const std::string kind = in.text("kind");
  if (!in.fine() || version.value_or(kVersion) != kVersion) return false;
  if (kind == "hello") {
    Identity said;
    std::optional<i64> others;
    in.count("other_steps", others);
    in.count("pid", said.pid);
    in.count("world", said.world);
    if (!in.fine()) return false;
    if (said.pid) identity_.pid = said.pid;
    if (said.world) identity_.world = said.world;
    if (others) identity_.other_steps = *others;
    return begun_ = true;
  }
  if (kind == "end") return begun_ = ended_ = true;
  if (kind == "phase") {
    const std::string name = in.text("phase");
    const auto phase = phase_from(name);
    if (!in.fine() || !phase || !is_step_phase(name)) return false;
    phase_ = *phase;
    return begun_ = true;
  }
  if (kind == "memory") {
    Memory memory;
    in.count("peak_allocated_bytes", memory.peak_allocated_bytes);
    in.count("peak_reserved_bytes", memory.peak_reserved_bytes);
    in.count("alloc_retries", memory.alloc_retries);
    in.count("ooms", memory.ooms);
    if (!in.fine()) return false;
    memory_ = memory;
    return begun_ = true;
  }
  if (kind == "error") {
    auto error = error_from(in);
    if (!error) return false;
    error->after_end = ended_;
    if (!error_) error_ = std::move(error);  // later errors are consequences of the first
    return begun_ = true;
  }
  return kind == "step" && understand_step(in);
}

bool TrainerReport::understand_step(Members& in) {
  std::optional<i64> number;
  TrainerStep step;
  in.count("step", number);
  in.milliseconds("ms", step.ms);
  in.milliseconds("forward_ms", step.forward_ms);
  in.milliseconds("backward_ms", step.backward_ms);
  in.milliseconds("optimizer_ms", step.optimizer_ms);
  in.number("loss", step.loss);
  in.count("tokens", step.tokens);
  in.count("alloc_retries", step.alloc_retries);
  step.number = number.value_or(0);
  if (!in.fine()) return false;
  if (log_.steps) steps_.clear(), last_step_ = 0, log_.steps = false;
  return add_step(step) && (begun_ = true);
}

// Steps count upwards; a trainer that starts over, or two writers in one file, would make nonsense of the
// medians.
bool TrainerReport::add_step(TrainerStep step) {
  if (step.number <= last_step_ || step.number > kMostSteps) return false;
  last_step_ = step.number;
  steps_.push_back(step);
  return true;
}

}  // namespace sweep::command
