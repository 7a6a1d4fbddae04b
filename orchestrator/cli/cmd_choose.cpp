// sweep choose: which machines for a training run, by predicted rates and prices: the cheapest that meets a
// deadline, the fastest within a budget.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "bench_kernels/shape/catalogue.h"
#include "bench_kernels/shape/count.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/planning.h"
#include "orchestrator/plan/planner.h"

namespace sweep::cli {
namespace {

constexpr double kHoursOfDay = 24, kSecondsOfHour = 3600, kGibibyte = 1024.0 * 1024 * 1024;

struct ChooseCommand {
  std::string grid;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  double tokens = 0;
  std::optional<double> days, usd;
  i64 show = 5;
};

struct Option {
  const PlanEntry* entry = nullptr;
  double rate = 0, hours = 0;  // figures of the whole job
  std::optional<double> usd{};
};

// The options that fit by the prediction and have a predicted rate.
std::vector<Option> options_of(const driver::Planned& planned, double tokens,
                               const std::map<std::string, double>& prices) {
  std::vector<Option> out;
  for (const PlanEntry& entry : planned.entries) {
    const Trial& t = entry.trial;
    const auto hardware = shape::find_hardware(t.hardware);
    if (!entry.admitted || !hardware || !entry.predicted.step_ms || plan::memory_share(entry).value_or(0) > 1)
      continue;
    Option o{&entry};
    o.rate = 1e3 * static_cast<double>(t.global_batch_size) * static_cast<double>(t.seq_len) /
             *entry.predicted.step_ms;
    o.hours = tokens / o.rate / kSecondsOfHour;
    const auto own = prices.find(t.hardware);
    if (own != prices.end())
      o.usd = own->second * o.hours * static_cast<double>(t.nodes);
    else if (hardware->price)
      o.usd = hardware->price->usd_per_node_hour * o.hours * static_cast<double>(t.nodes);
    out.push_back(o);
  }
  return out;
}

// The whole model in fp32: what a rank 0 holds that loads or saves an unsplit checkpoint.
double rank_zero_bytes(const Trial& t) {
  return 4 * static_cast<double>(shape::parameter_count(t.spec));
}

void print(Io& io, const std::vector<Option>& options, i64 show) {
  io.out << "hardware             nodes   dp  tp  pp  cp zero  mbs recompute   days        usd  tokens/s  "
            "model in "
            "fp32\n";
  for (const Option& o : options) {
    if (show-- <= 0) return;
    const Trial& t = o.entry->trial;
    io.out << fmt::format(
        "{:20} {:5} {:4} {:3} {:3} {:3} {:4} {:4} {:9} {:6.1f} {:>10} {:9.3g} {:9.1f} GiB\n", t.hardware,
        t.nodes, t.dp, t.tp, t.pp, t.cp, t.zero, t.micro_batch_size, to_string(t.recompute),
        o.hours / kHoursOfDay, o.usd ? fmt::format("{:.0f}", *o.usd) : "-", o.rate,
        rank_zero_bytes(t) / kGibibyte);
  }
}

int choose(Io& io, const ChooseCommand& o) {
  const auto planned = driver::make_plan(o.grid, o.max_points, std::nullopt);
  if (!planned) return refuse(io, planned.error());
  const auto choice = driver::choose_launcher(planned->grid.launch, {});
  if (!choice) return refuse(io, choice.error());
  auto options = options_of(*planned, o.tokens, choice->usd_per_node_hour);
  if (options.empty()) {
    io.err << fmt::format("sweep: nothing of {} is predicted to fit; `sweep plan {}` says why\n", o.grid,
                          o.grid);
    return kUnanswered;
  }
  const auto fastest = std::ranges::min(options, {}, &Option::hours);
  if (o.days) std::erase_if(options, [&](const Option& each) { return each.hours > *o.days * kHoursOfDay; });
  if (o.usd) std::erase_if(options, [&](const Option& each) { return !each.usd || *each.usd > *o.usd; });
  if (options.empty()) {
    io.err << fmt::format(
        "sweep: no configuration finishes {:g} tokens{}{}; the fastest (predicted) takes {:.1f} days{}\n",
        o.tokens, o.days ? fmt::format(" in {:g} days", *o.days) : "",
        o.usd ? fmt::format(" for {:.0f} USD", *o.usd) : "", fastest.hours / kHoursOfDay,
        fastest.usd ? fmt::format(" and {:.0f} USD", *fastest.usd) : "");
    return kUnanswered;
  }
  // A budget alone asks for the fastest, all else for the cheapest.
  const bool by_time = o.usd && !o.days;
  std::ranges::stable_sort(options, {}, [&](const Option& each) {
    return by_time ? std::pair(each.hours, each.usd.value_or(0))
                   : std::pair(each.usd.value_or(1e300), each.hours);
  });
  io.err << fmt::format(
      "{} predicted to fit and meet that; {} first. Predicted, not measured: run the "
      "first ones\n",
      counted(i64(options.size()), "configuration"), by_time ? "the fastest" : "the cheapest");
  print(io, options, o.show);
  return kAnswered;
}

}  // namespace

void add_choose(Registry r) {
  auto* c = r.app.add_subcommand("choose",
                                 "which machines for a training run: the cheapest configuration that meets a "
                                 "deadline, the fastest within a budget");
  auto o = std::make_shared<ChooseCommand>();
  c->add_option("GRID", o->grid, "a grid with hardware, nodes and layouts as axes")->required();
  c->add_option("--tokens", o->tokens, "tokens that the run trains on, such as 1e12")
      ->required()
      ->check(CLI::PositiveNumber);
  c->add_option("--days", o->days, "it must be done within so many days")->check(CLI::PositiveNumber);
  c->add_option("--usd", o->usd, "it may cost so much; alone: the fastest within it")
      ->check(CLI::PositiveNumber);
  c->add_option("--show", o->show, "configurations to show")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->callback([r, o] { r.chosen = [r, o] { return choose(r.io, *o); }; });
}

}  // namespace sweep::cli
