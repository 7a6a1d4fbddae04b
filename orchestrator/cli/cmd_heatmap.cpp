// sweep heatmap: two axes, one metric, the best configuration of every cell.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>

#include "base/expected.h"
#include "orchestrator/answers/charts/heatmap.h"
#include "orchestrator/answers/charts/png.h"
#include "orchestrator/answers/format.h"
#include "orchestrator/answers/rehearsed.h"
#include "orchestrator/answers/statistics/filter.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/page_options.h"
#include "orchestrator/export/results.h"
#include "schema/ranking.h"

namespace sweep::cli {
namespace {

struct HeatmapCommand {
  SweepSelector where;
  answers::HeatmapOptions options;
  std::vector<std::string> only;
  std::string output;
};

// The picture in the form that the ending of the file asks for.
Expected<std::string> rendered(const std::string& ending, const answers::Heatmap& map,
                               const std::vector<ResultRow>& rows) {
  if (ending == ".html") return answers::to_html(map, rows);
  if (ending == ".svg") return answers::to_svg(map);
  if (ending == ".png") return answers::to_png(answers::to_svg(map));
  std::ostringstream text;
  SWEEP_TRY(exports::write_csv(text, answers::cells_table(map), {}));
  return text.str();
}

int draw(Io& io, const HeatmapCommand& o) {
  const std::string ending = std::filesystem::path(o.output).extension().string();
  if (ending != ".html" && ending != ".svg" && ending != ".png" && ending != ".csv")
    return refuse(io, {fmt::format("-o {}: the ending tells the form: .html, .svg, .png or .csv", o.output)});
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  auto all = opened->store->results(opened->sweep.id);
  if (!all) return refuse(io, all.error());
  const auto rows = answers::keep_only(std::move(*all), o.only);
  if (!rows) return refuse(io, rows.error());
  auto options = o.options;
  if (options.title.empty()) options.title = opened->sweep.name;
  if (options.value.empty()) options.value = usual_metric(*rows);
  options.question = opened->sweep.question;
  for (const auto& request : o.only) options.chosen.push_back(request.substr(0, request.find('=')));
  const auto map = answers::heatmap(*rows, options);
  if (!map) return refuse(io, map.error());
  auto picture = rendered(ending, *map, *rows);
  if (!picture) return refuse(io, picture.error());
  if (const auto written = write_output(io, o.output, *picture); !written) return refuse(io, written.error());
  io.err << fmt::format("{}: {} by {}, {} x {} cells of {}\n", o.output, map->rows.name(), map->cols.name(),
                        map->row_keys.size(), map->col_keys.size(), map->value.name());
  if (const auto text = answers::slices_text(*map); !text.empty()) {
    io.err << fmt::format(
        "only {} is drawn: other values do not compare with it; --only {}=VALUE chooses another{}, several "
        "values mix "
        "them\n",
        text, map->slices.front().axis.name(), ending == ".html" ? " (the page can, too)" : "");
  }
  const auto has_value = [&](const ResultRow& row) {
    return answers::number(map->value.of(row)).has_value();
  };
  if (std::ranges::none_of(*rows, has_value))
    io.err << fmt::format("no result has a value of {}: every cell is empty; --value names another metric\n",
                          map->value.name());
  io.err << answers::rehearsed_line(map->rehearsed);
  if (const auto text = answers::mix_warning(*map); !text.empty()) io.err << text << "\n";
  return kAnswered;
}

}  // namespace

void add_heatmap(Registry r) {
  auto* c = r.app.add_subcommand("heatmap", "two axes, one metric, the best configuration of every cell");
  auto o = std::make_shared<HeatmapCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  add_json(*c, kJsonErrors);
  add_heatmap_options(*c, o->options);
  c->add_option("--title", o->options.title, "title; absent: the name of the sweep");
  c->add_option("--only", o->only,
                "keep these values of an axis or label: tp=1,8 or nodes=4..64; may be repeated")
      ->type_name("AXIS=VALUES")
      ->allow_extra_args(false);
  c->add_option("-o,--output", o->output, "FILE.html (interactive), FILE.svg, FILE.png or FILE.csv")
      ->required();
  c->callback([r, o] { r.chosen = [r, o] { return draw(r.io, *o); }; });
}

}  // namespace sweep::cli
