// Parts of the report page, private to report/: each gives the inside of one section as HTML.
#pragma once
#include <span>
#include <string>

#include "orchestrator/report/best.h"
#include "orchestrator/report/report_page.h"

namespace sweep::report::parts {

std::string answer(const ReportInput&, std::span<const BestOfGroup>, const BestOptions&);
std::string cost(const ReportInput&);
std::string landscape(const ReportInput&);
std::string memory_and_speed(const ReportInput&);
std::string scaling(const ReportInput&);
std::string batches(const ReportInput&);
std::string time_split(const ReportInput&);
std::string failures(const ReportInput&);
std::string environment(const ReportInput&);
std::string reproduce(const ReportInput&);

// What varies, told as "TP2 ZeRO1 recompute=full"; the model where nothing varies.
std::string name_of(const ResultRow&, std::span<const Field> varying);
std::string paragraph(std::string_view text);  // escaped
std::string block(std::string_view text);      // escaped, several lines, selected whole by a click
std::string html_table(const Table&);          // shown as tables.h shows it

}  // namespace sweep::report::parts
