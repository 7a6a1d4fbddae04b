// A Transfer as text for people, as one JSON document, and as a table of its configurations for CSV.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "orchestrator/answers/statistics/transfer.h"

namespace sweep::answers {

std::string transfer_text(const Transfer&, const TransferOptions&, std::size_t width);
nlohmann::json transfer_json(const Transfer&, const TransferOptions&);
Table transfer_table(const Transfer&, const TransferOptions&);

// "MBS4 ZeRO3 recompute=full": what tells a shared configuration from the others of its cell.
std::string transfer_setting(const Transfer&, const SharedConfiguration&);

}  // namespace sweep::answers
