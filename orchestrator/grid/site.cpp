#include "orchestrator/grid/site.h"

#include <cstdlib>

#include "base/expected.h"
#include "base/files.h"
#include "base/input_file.h"
#include "bench_kernels/shape/catalogue.h"
#include "orchestrator/grid/document.h"
#include "orchestrator/grid/keys.h"
#include "orchestrator/grid/read_sections.h"
#include "orchestrator/grid/read_values.h"

namespace sweep::grid {
namespace {

Status read_site_limits(const Document& document, Site& site) {
  const Entry* entry = document.root().entry("limits");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(document, *entry->value, entry->place, "limits"));
  SWEEP_TRY(check_keys(document, *entry->value, kSiteLimitKeys, "of limits"));
  if (const Node* node = entry->value->find("gpu_hours")) {
    SWEEP_GET(site.gpu_hours, read_real(document, *node, "gpu_hours", 1e-6, 1e9));
  }
  return {};
}

// prices: {h100-sxm-80gb: {node_hour: 25}, a100-80gb: {gpu_hour: 1.8}}. A GPU's price is for all of its
// node's.
Status read_prices(const Document& document, Site& site) {
  const Entry* entry = document.root().entry("prices");
  if (entry == nullptr) return {};
  SWEEP_TRY(need_map(document, *entry->value, entry->place, "prices"));
  for (const Entry& each : entry->value->entries) {
    const auto hardware = shape::find_hardware(each.key);
    if (!hardware) return document.refuse(each.place, hardware.error());
    SWEEP_TRY(need_map(document, *each.value, each.place, each.key));
    SWEEP_TRY(check_keys(document, *each.value, kPriceKeys, "of a price"));
    const Node *node = each.value->find("node_hour"), *gpu = each.value->find("gpu_hour");
    if ((node == nullptr) == (gpu == nullptr))
      return document.refuse(each.place, {ErrorKind::kConflict, "node_hour"},
                             "a price is given as node_hour or as gpu_hour, in USD");
    SWEEP_GET(const auto usd, read_real(document, node != nullptr ? *node : *gpu, "a price", 1e-6, 1e6));
    site.usd_per_node_hour[each.key] =
        usd * (node != nullptr ? 1.0 : static_cast<double>(hardware->gpus_per_node));
  }
  return {};
}

Status add_file(const std::filesystem::path& path, Site& site) {
  SWEEP_GET(const auto file, read_input(path, kMaxFileBytes, Streams::kTaken));
  SWEEP_GET(const auto document, Document::parse(file.bytes, path.string()));
  SWEEP_TRY(need_map(document, document.root(), {}, "a site profile"));
  SWEEP_TRY(check_keys(document, document.root(), launchers_and(kSiteKeys), "of a site profile"));
  if (const Node* node = document.root().find("checkpoint_folder")) {
    SWEEP_GET(site.checkpoint_folder, read_word(document, *node, "checkpoint_folder", 4096));
  }
  SWEEP_GET(const auto launchers, read_launchers(document, document.root()));
  site.launch = merged(std::move(site.launch), launchers);
  site.files.push_back(path);
  SWEEP_TRY(read_prices(document, site));
  return read_site_limits(document, site);
}

}  // namespace

std::vector<std::filesystem::path> site_files() {
  if (const char* only = std::getenv("SWEEP_SITE"); only != nullptr && *only != '\0') return {only};
  std::vector<std::filesystem::path> out{"/etc/sweep/site.yaml"};
  if (const auto config = config_folder(); !config.empty()) out.push_back(config / "site.yaml");
  return out;
}

Expected<Site> read_site(const std::vector<std::filesystem::path>& files) {
  Site site;
  for (const auto& path : files) {
    std::error_code ec;
    if (!std::filesystem::exists(path, ec)) continue;
    SWEEP_TRY(add_file(path, site));
  }
  return site;
}

}  // namespace sweep::grid
