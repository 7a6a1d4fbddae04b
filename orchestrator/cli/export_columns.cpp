#include "orchestrator/cli/export_columns.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ostream>
#include <sstream>

#include "base/process.h"
#include "orchestrator/answers/fields.h"
#include "orchestrator/export/column_file.h"
#include "orchestrator/launch/programs.h"

namespace sweep::cli {
namespace {

// Of a comma-separated list; empty: all.
Expected<std::vector<const Column*>> columns_named(const std::string& list) {
  std::vector<const Column*> out;
  for (const std::string& name : split_list(list)) {
    const Column* column = find_column(name);
    if (!column) return tl::make_unexpected(answers::Field::resolve(name, ResultColumns{}).error());
    out.push_back(column);
  }
  if (out.empty())
    for (const Column& column : columns()) out.push_back(&column);
  return out;
}

}  // namespace

int export_columns(Io& io, const ExportOptions& o) {
  const auto wanted = columns_named(o.columns);
  if (!wanted) return refuse(io, wanted.error());
  const auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
  const auto rows = opened->store->result_columns(opened->sweep.id, exports::selection_of(*wanted));
  if (!rows) return refuse(io, rows.error());
  if (o.output.empty() || o.output == "-") {  // not kept a second time
    const auto written = exports::write_columns(io.out, *wanted, *rows);
    return written ? kAnswered : refuse(io, written.error());
  }
  std::ostringstream bytes;
  auto written = exports::write_columns(bytes, *wanted, *rows);
  if (written) written = write_output(io, o.output, bytes.str());
  return written ? kAnswered : refuse(io, written.error());
}

int export_frame(Io& io, const ExportOptions& o) {
  if (o.output.empty())
    return refuse(io, {fmt::format("`sweep export {}` writes a file: say which by -o FILE", o.format),
                       ErrorKind::kMissing, "-o"});
  // The same sweep, and the same refusals, as of every other format.
  const auto opened = open_sweep(o.where, store::Mode::kReadOnly);
  if (!opened) return refuse(io, opened.error());
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
  if (wait_for(*child).code == 0) return kAnswered;
  return refuse(io, {fmt::format("{} -m sweep_bench wrote no file. Parquet and Arrow files need the wheel "
                                 "sweep-bench and pyarrow: `pip install sweep_bench-*.whl pyarrow`; "
                                 "SWEEP_PYTHON names the Python that has them",
                                 program.argv.front()),
                     ErrorKind::kUnsupported});
}

}  // namespace sweep::cli
