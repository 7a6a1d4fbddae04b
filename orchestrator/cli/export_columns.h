// Exports in columns: their bytes for programs, and Parquet and Arrow files, which the Python module writes.
#pragma once
#include "orchestrator/cli/export_trackers.h"

namespace sweep::cli {

int export_columns(Io&, const ExportOptions&);
// format: parquet or arrow.
int export_frame(Io&, const ExportOptions&);

}  // namespace sweep::cli
