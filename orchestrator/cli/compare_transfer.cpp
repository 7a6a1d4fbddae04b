#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "orchestrator/answers/charts/png.h"
#include "orchestrator/answers/json_values.h"
#include "orchestrator/answers/statistics/transfer.h"
#include "orchestrator/cli/compare_options.h"
#include "orchestrator/export/results.h"

namespace sweep::cli {
namespace {

using Sides = std::span<const answers::CompareSide>;

Expected<void> write_chart(Io& io, const std::string& file, const std::string& svg) {
  if (file.ends_with(".svg")) return write_output(io, file, svg);
  SWEEP_GET(const auto png, answers::to_png(svg));
  return write_output(io, file, png);
}

Expected<void> print_answer(Io& io, const answers::Transfer& found, const TransferCommand& o, Sides sides) {
  if (o.csv) return exports::write_csv(io.out, answers::transfer_table(found, o.options), {});
  const std::string rehearsed = answers::rehearsed_sides_line(sides);
  if (!o.json)
    return write_output(
        io, "",
        answers::transfer_text(found, o.options, io.out_is_terminal ? std::size_t(io.width) : 0) +
            (rehearsed.empty() ? "" : "\n" + rehearsed));
  auto document = answers::transfer_json(found, o.options);
  document["rehearsed"] = answers::text_or_null(answers::rehearsed_sides(sides));
  print_document(io, document);
  return {};
}

}  // namespace

void add_transfer_options(CLI::App& command, TransferCommand& o) {
  auto* transfer = command.add_flag(
      "--transfer", o.wanted,
      "how far A's order of configurations holds in B: rank correlation, what choosing by A costs, "
      "what fits, by which axes they differ (docs/transfer.md)");
  command
      .add_option(
          "--by", o.by,
          "of --transfer: axes or labels whose values are ranked each by themselves; absent: model,nodes")
      ->needs(transfer)
      ->type_name("AXES");
  command
      .add_option("--match", o.match,
                  "of --transfer: axes or labels in which two results must be equal to be one configuration; "
                  "absent: all that "
                  "both know")
      ->needs(transfer)
      ->type_name("AXES");
  command
      .add_option("-o,--output", o.chart,
                  "also as a page, FILE.html; of --transfer: draw it, as FILE.svg or FILE.png")
      ->type_name("FILE");
}

int print_transfer(Io& io, Sides sides, const TransferCommand& o) {
  if (!o.chart.empty() && !o.chart.ends_with(".svg") && !o.chart.ends_with(".png"))
    return refuse(io, {fmt::format("-o {}: the ending tells the form: .svg or .png", o.chart)});
  TransferCommand command = o;
  if (!o.by.empty()) command.options.by = split_list(o.by);
  if (!o.match.empty()) command.options.match = split_list(o.match);
  const auto found = answers::transfer(sides[0].rows, sides[1].rows, command.options);
  if (!found) return refuse(io, found.error());
  if (const auto written = print_answer(io, *found, command, sides); !written)
    return refuse(io, written.error());
  if (!o.chart.empty()) {
    const auto drawn = write_chart(
        io, o.chart,
        answers::transfer_svg(*found, command.options, answers::transfer_names(sides[0], sides[1])));
    if (!drawn) return refuse(io, drawn.error());
    io.err << fmt::format(
        "{}: {} that ran on both sides\n", o.chart,
        counted(std::ranges::count_if(found->shared, &answers::SharedConfiguration::measured),
                "configuration"));
  }
  io.err << answers::machine_differences(sides);
  return kAnswered;
}

}  // namespace sweep::cli
