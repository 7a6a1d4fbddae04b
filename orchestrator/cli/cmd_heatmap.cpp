// sweep heatmap: two axes, one metric, the best configuration of every cell.
#include <fmt/format.h>

#include <ostream>
#include <sstream>

#include "orchestrator/cli/command.h"
#include "orchestrator/export/csv.h"
#include "orchestrator/report/heatmap.h"

namespace sweep::cli {
namespace {

struct HeatmapCommand {
  Where where;
  report::HeatmapOptions options;
  std::string output;
};

int draw(Io& io, const HeatmapCommand& o) {
  const bool html = o.output.ends_with(".html"), svg = o.output.ends_with(".svg"),
             csv = o.output.ends_with(".csv");
  if (!html && !svg && !csv)
    return refuse(io, {fmt::format("-o {}: the ending tells the form: .html, .svg or .csv", o.output)});
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return refuse(io, rows.error());
  auto options = o.options;
  if (options.title.empty()) options.title = opened->sweep.name;
  options.question = opened->sweep.question;
  const auto map = report::heatmap(*rows, options);
  if (!map) return refuse(io, map.error());
  std::ostringstream text;
  Expected<void> written;
  if (csv)
    written = exports::write_csv(text, report::cells_table(*map), {});
  else
    text << (html ? report::to_html(*map, *rows) : report::to_svg(*map));
  if (written) written = write_output(io, o.output, text.str());
  if (!written) return refuse(io, written.error());
  io.err << fmt::format("{}: {} by {}, {} x {} cells of {}\n", o.output, map->rows.name(), map->cols.name(),
                        map->row_keys.size(), map->col_keys.size(), map->value.name());
  return kAnswered;
}

}  // namespace

void add_heatmap(Registry r) {
  auto* c = r.app.add_subcommand("heatmap", "two axes, one metric, the best configuration of every cell");
  auto o = std::make_shared<HeatmapCommand>();
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("--rows", o->options.rows, "axis of the rows; absent: the axis with most values");
  c->add_option("--cols", o->options.cols, "axis of the columns; absent: the axis with the second most");
  c->add_option("--value", o->options.value, "metric shown")->capture_default_str();
  c->add_option("--by", o->options.objective,
                "metric that decides which configuration is best; absent: the value");
  c->add_option("--title", o->options.title, "title; absent: the name of the sweep");
  c->add_option("-o,--output", o->output, "FILE.html (interactive), FILE.svg or FILE.csv")->required();
  c->callback([r, o] { r.chosen = [r, o] { return draw(r.io, *o); }; });
}

}  // namespace sweep::cli
