// sweep merge: the results of colleagues' databases joined into one.
#include <ostream>

#include "orchestrator/answers/exchange.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/run/retry_policy.h"

namespace sweep::cli {
namespace {

struct MergeCommand {
  std::string into;
  std::vector<std::string> from;
  bool json = false;
};

int merge_files(Io& io, const MergeCommand& o) {
  const std::vector<std::filesystem::path> files(o.from.begin(), o.from.end());
  std::error_code ignored;
  if (!std::filesystem::exists(o.into, ignored))  // a mistyped command makes none
    for (const auto& file : files)
      if (const auto other = store::Store::open(file, store::Mode::kReadOnly); !other)
        return refuse(io, other.error());
  auto store = run::open_store(o.into, store::Mode::kReadWrite);
  if (!store) return refuse(io, store.error());
  auto merged = (*store)->merge(files);
  if (!merged) return refuse(io, merged.error());
  const answers::MergeReport report{o.into, o.from, std::move(*merged)};
  io.err << answers::merge_text(report);
  if (o.json) print_document(io, answers::merge_json(report));
  return kAnswered;
}

}  // namespace

void add_merge(Registry r) {
  auto* c = r.app.add_subcommand("merge", "join the results of other databases into one");
  auto o = std::make_shared<MergeCommand>();
  c->add_option("INTO", o->into, "the target database; created if missing")->required()->type_name("INTO.db");
  c->add_option("FROM", o->from, "the databases whose results it takes; they are only read")
      ->required()
      ->type_name("FROM.db");
  c->add_flag("--json", o->json, kJsonDocument);
  c->callback([r, o] { r.chosen = [r, o] { return merge_files(r.io, *o); }; });
}

}  // namespace sweep::cli
