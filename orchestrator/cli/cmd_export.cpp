// sweep export: every row for other programs, and finished trials for the trackers people use.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <ostream>
#include <sstream>

#include "base/process.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/answers/statistics/grouping.h"
#include "orchestrator/cli/command.h"
#include "orchestrator/cli/export_trackers.h"
#include "orchestrator/export/benchmark_json.h"
#include "orchestrator/export/column_file.h"
#include "orchestrator/export/results.h"
#include "orchestrator/launch/programs.h"

namespace sweep::cli {
namespace {

const std::vector<std::string> kFormats = {
    "csv", "json", "jsonl", "columns", "parquet", "arrow", "bencher", "github-benchmark", "wandb", "mlflow"};

int export_benchmark(Io& io, const ExportOptions& o, const std::vector<ResultRow>& rows) {
  const auto named = exports::named_rows(rows, answers::setting_names(rows, true));
  std::string text;
  if (o.format == "bencher") {
    text = exports::bencher_json(named);
  } else {
    const auto metric = answers::resolve_ranked(o.metric);
    if (!metric) return refuse(io, metric.error());
    text = exports::github_benchmark_json(named, *find_column(metric->name()));
    io.err << fmt::format(
        "{}: give github-action-benchmark this file with tool: '{}'\n", metric->name(),
        answers::lower_is_better(metric->name()) ? "customSmallerIsBetter" : "customBiggerIsBetter");
  }
  const auto written = write_output(io, o.output, text);
  return written ? kAnswered : refuse(io, written.error());
}

// The columns to read for names of columns and of a grid's own axes; for no names, all of them.
ColumnSelection selection_for(const std::vector<std::string>& names) {
  std::vector<const Column*> out;
  for (const std::string& name : names) {
    const Column* column = find_column(name);
    out.push_back(column ? column : find_column("labels"));
  }
  if (names.empty())
    for (const Column& column : columns()) out.push_back(&column);
  return exports::selection_of(out);
}

Expected<std::vector<answers::Field>> fields_named(const std::vector<std::string>& names,
                                                   const ResultColumns& rows) {
  if (names.empty()) return answers::all_fields(rows);
  std::vector<answers::Field> out;
  for (const std::string& name : names) {
    SWEEP_GET(const auto field, answers::Field::resolve(name, rows));
    out.push_back(field);
  }
  return out;
}

exports::FileColumn file_column(const answers::Field& field, const ResultColumns& rows) {
  if (const Column* column = find_column(field.name())) return exports::file_column(*column, rows);
  return exports::file_column(field.name(), std::string(field.unit()), answers::coded_values(rows, field));
}

int export_columns(Io& io, const ExportOptions& o) {
  const auto names = split_list(o.columns);
  const auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->result_columns(opened->sweep.id, selection_for(names));
  if (!rows) return refuse(io, rows.error());
  const auto fields = fields_named(names, *rows);
  if (!fields) return refuse(io, fields.error());
  std::vector<exports::FileColumn> columns;
  for (const auto& field : *fields) columns.push_back(file_column(field, *rows));
  if (o.output.empty() || o.output == "-") {  // not kept a second time
    const auto written = exports::write_columns(io.out, columns, rows->size());
    return written ? kAnswered : refuse(io, written.error());
  }
  std::ostringstream bytes;
  auto written = exports::write_columns(bytes, columns, rows->size());
  if (written) written = write_output(io, o.output, bytes.str());
  return written ? kAnswered : refuse(io, written.error());
}

// Refuses a name that is neither a column nor an axis of the grid's own.
Expected<void> check_names(const Opened& opened, const std::vector<std::string>& names) {
  std::vector<std::string> own;
  std::ranges::copy_if(names, std::back_inserter(own), [](const auto& name) { return !find_column(name); });
  if (own.empty()) return {};
  SWEEP_GET(const auto rows, opened.store->result_columns(opened.sweep.id, selection_for(own)));
  SWEEP_TRY(fields_named(own, rows));
  return {};
}

// Parquet and Arrow files are written by a module that replaces the file: a device would be lost.
Expected<void> check_frame_file(const ExportOptions& o) {
  std::error_code ec;
  const auto there = std::filesystem::status(o.output, ec);
  if (o.output.empty() || o.output == "-")
    return fail(ErrorKind::kMissing, "-o",
                fmt::format("`sweep export {}` writes a file: say which by -o FILE", o.format));
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
    return fail(ErrorKind::kInvalidValue, o.output,
                fmt::format("'{}' is no file, and `sweep export {}` writes nothing else; name another by -o",
                            o.output, o.format));
  return check_output(o.output);
}

// Why the module wrote no file, by its exit code (python/sweep_bench/__main__.py). Its words are on standard error.
Error no_frame(const std::string& python, int code, const std::string& file) {
  constexpr int kNoModule = 1, kNoArrow = 3;  // 1: this Python lacks the module
  const std::string what = fmt::format("{} -m sweep_bench wrote no file", python);
  if (code == kNoModule || code == kNoArrow)
    return {fmt::format("{}. Parquet and Arrow files need the wheel sweep-bench and pyarrow: `pip install "
                        "sweep_bench-*.whl pyarrow`; SWEEP_PYTHON names the Python that has them",
                        what),
            ErrorKind::kUnsupported};
  if (code == kExitDiskFull)
    return {fmt::format("{}: no room for '{}'; free space, or raise the quota, and run it again", what, file),
            ErrorKind::kDiskFull, file};
  return {fmt::format("{} (exit code {}); the line above says why", what, code), ErrorKind::kFailed, file};
}

int export_frame(Io& io, const ExportOptions& o) {
  if (const auto can = check_frame_file(o); !can) return refuse(io, can.error());
  // The same sweep, and the same refusals, as of every other format.
  const auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  if (const auto known = check_names(*opened, split_list(o.columns)); !known)
    return refuse(io, known.error());
  const char* python = std::getenv("SWEEP_PYTHON");
  ::setenv("SWEEP_BIN", launch::companion("sweep").parent_path().c_str(), 0);  // the module asks this program
  ChildProgram program{{python ? python : "python3", "-m", "sweep_bench", o.format, o.output, o.where.db,
                        opened->sweep.name, o.columns}};
  const auto child = start_program(program);
  if (!child)
    return refuse(io,
                  {fmt::format("{}; Parquet and Arrow files are written by the Python module of the wheel "
                               "sweep-bench (docs/exports.md)",
                               child.error().message),
                   ErrorKind::kUnsupported});
  const int code = wait_for(*child).code;
  return code == 0 ? kAnswered : refuse(io, no_frame(program.argv.front(), code, o.output));
}

int export_rows(Io& io, const ExportOptions& o) {
  if (o.format == "columns") return export_columns(io, o);
  if (o.format == "parquet" || o.format == "arrow") return export_frame(io, o);
  auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->results(opened->sweep.id);
  if (!rows) return refuse(io, rows.error());
  if (o.format == "bencher" || o.format == "github-benchmark") return export_benchmark(io, o, *rows);
  const bool to_file = !o.output.empty() && o.output != "-";
  std::ostringstream text;
  std::ostream& out = to_file ? text : io.out;  // printed text is not kept a second time
  const auto source = exports::rows_of(*rows);
  auto written = o.format == "csv"    ? exports::write_csv(out, source, {o.raw_text})
                 : o.format == "json" ? exports::write_json(out, source)
                                      : exports::write_json_lines(out, source);
  if (written && to_file) written = write_output(io, o.output, text.str());
  return written ? kAnswered : refuse(io, written.error());
}

// An option that the chosen format would silently ignore is refused.
struct Limited {
  const char* option;
  std::vector<std::string> formats;
};
const std::vector<Limited>& limited_options() {
  static const std::vector<Limited> table = {
      {"--output", {"csv", "json", "jsonl", "columns", "parquet", "arrow", "bencher", "github-benchmark"}},
      {"--columns", {"columns", "parquet", "arrow"}},
      {"--json", {"columns", "parquet", "arrow"}},
      {"--raw-text", {"csv"}},
      {"--metric", {"github-benchmark"}},
      {"--uri", {"wandb", "mlflow"}},
      {"--project", {"wandb"}},
      {"--entity", {"wandb"}},
      {"--offline", {"wandb"}},
      {"--experiment", {"mlflow"}},
      {"--ca", {"wandb", "mlflow"}},
      {"--key-file", {"wandb", "mlflow"}},
      {"--timeout", {"wandb", "mlflow"}},
      {"--again", {"wandb", "mlflow"}},
  };
  return table;
}

std::optional<Error> misplaced_option(const CLI::App& command, const std::string& format) {
  for (const Limited& limit : limited_options())
    if (command.count(limit.option) > 0 &&
        std::find(limit.formats.begin(), limit.formats.end(), format) == limit.formats.end())
      return Error{fmt::format("{} does not apply to `sweep export {}`, only to {}", limit.option, format,
                               fmt::join(limit.formats, ", "))};
  if (command.count("--offline") > 0)
    for (const char* online : {"--uri", "--ca", "--key-file", "--timeout", "--again"})
      if (command.count(online) > 0)
        return Error{fmt::format("--offline writes files and contacts no server; {} does not apply", online)};
  return std::nullopt;
}

int export_to(Io& io, const CLI::App& command, const ExportOptions& o) {
  if (const auto wrong = misplaced_option(command, o.format)) return refuse(io, *wrong);
  if (o.format == "mlflow") return export_mlflow(io, o);
  if (o.format == "wandb")
    return command.count("--offline") > 0 ? export_wandb_offline(io, o) : export_wandb(io, o);
  return export_rows(io, o);
}

void add_tracker_options(CLI::App& c, ExportOptions& o) {
  c.add_option("--uri", o.uri,
               "wandb, mlflow: the server; absent: WANDB_BASE_URL (else api.wandb.ai), MLFLOW_TRACKING_URI")
      ->type_name("URL");
  c.add_option("--project", o.project, "wandb: the project; absent: WANDB_PROJECT, else sweep");
  c.add_option("--entity", o.entity, "wandb: team or user; absent: WANDB_ENTITY, else the key's default");
  c.add_option("--offline", o.offline,
               "wandb: write .wandb files under this folder for `wandb sync`; no network")
      ->type_name("DIR");
  c.add_option("--experiment", o.experiment,
               "mlflow: the experiment; absent: MLFLOW_EXPERIMENT_NAME, else sweep");
  c.add_option("--ca", o.ca, "wandb, mlflow: trust the certificates of this PEM file")->type_name("FILE");
  c.add_option("--key-file", o.key_file,
               "wandb, mlflow: a file of mode 600 with 'machine HOST login NAME password KEY'; absent: "
               "$NETRC, ~/.netrc")
      ->type_name("FILE");
  c.add_option("--timeout", o.timeout_s, "wandb, mlflow: timeout of a request, in seconds")
      ->check(above_zero())
      ->capture_default_str();
  c.add_flag("--again", o.again,
             "wandb, mlflow: ignore the local record of what was sent, and ask the server");
}

}  // namespace

void add_export(Registry r) {
  auto* c = r.app.add_subcommand(
      "export", "every trial with every axis and metric as a file, or finished trials for W&B and MLflow");
  auto o = std::make_shared<ExportOptions>();
  c->add_option("FORMAT", o->format, fmt::format("{}", fmt::join(kFormats, ", ")))
      ->required()
      ->check(CLI::IsMember(kFormats));
  add_sweep(*c, o->where);
  add_db(*c, o->where);
  c->add_option("-o,--output", o->output, "the file to write; absent: standard output");
  c->add_option("--columns", o->columns,
                "columns, parquet, arrow: some columns, as trial,tp,step_ms (docs/fields.md); absent: all");
  add_json(*c, std::string("columns, parquet, arrow: ") + kJsonErrors);
  c->add_flag("--raw-text", o->raw_text,
              "csv: write text as it is, even where a spreadsheet would run it as a formula");
  c->add_option("--metric", o->metric, "github-benchmark: the metric; one file holds one")
      ->capture_default_str();
  add_tracker_options(*c, *o);
  c->callback([r, c, o] { r.chosen = [r, c, o] { return export_to(r.io, *c, *o); }; });
}

}  // namespace sweep::cli
