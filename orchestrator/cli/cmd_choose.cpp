// sweep choose: which machines for a training run, by predicted rates and prices: the cheapest that meets a
// deadline, the fastest within a budget.
#include <ostream>

#include "orchestrator/answers/tables/choose.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/driver/launchers.h"
#include "orchestrator/driver/planning.h"

namespace sweep::cli {
namespace {

struct ChooseCommand {
  std::string grid;
  std::uint64_t max_points = grid::ReadOptions{}.max_points;
  answers::ChooseRequest request;
  bool json = false;
};

int choose(Io& io, const ChooseCommand& o) {
  const auto planned = driver::make_plan(o.grid, o.max_points, {}, progress_to(io, false));
  if (!planned) return refuse(io, planned.error());
  const auto choice = driver::choose_launcher(planned->grid.launch, {});
  if (!choice) return refuse(io, choice.error());
  for (const auto& note : planned->notes) io.err << "note: " << note << '\n';
  const auto found = answers::choose(planned->entries, o.request, choice->usd_per_node_hour);
  io.err << answers::choices_summary(found, o.request, o.grid);
  if (o.json)
    print_document(io, answers::choices_json(found, o.request));
  else
    io.out << answers::choices_text(found, o.request);
  return found.meeting.empty() ? kUnanswered : kAnswered;
}

}  // namespace

void add_choose(Registry r) {
  auto* c = r.app.add_subcommand("choose",
                                 "which machines for a training run: the cheapest configuration that meets a "
                                 "deadline, the fastest within a budget");
  auto o = std::make_shared<ChooseCommand>();
  c->add_option("GRID", o->grid, "a grid with hardware, nodes and layouts as axes")->required();
  c->add_option("--tokens", o->request.tokens,
                "tokens that the run trains on, such as 1e12; padding is none of them")
      ->required()
      ->check(above_zero());
  c->add_option("--days", o->request.days, "it must be done within so many days")->check(above_zero());
  c->add_option("--usd", o->request.usd, "it may cost so much; alone: the fastest within it")
      ->check(above_zero());
  c->add_option("--show", o->request.show, "configurations to show")
      ->check(above_zero())
      ->capture_default_str();
  c->add_option("--max-points", o->max_points, "largest number of combinations before `where`")
      ->capture_default_str();
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return choose(r.io, *o); }; });
}

}  // namespace sweep::cli
