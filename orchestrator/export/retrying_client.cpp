#include "orchestrator/export/retrying_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/expected.h"
#include "schema/codec.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLongestWords = 300;

std::string plain(std::string_view text) {
  std::string out;
  bool tag = false;
  for (const char c : text) {
    if (c == '<') tag = true;
    const bool space = static_cast<unsigned char>(c) <= ' ' || c == 127;
    if (!tag && !(space && (out.empty() || out.back() == ' '))) out += space ? ' ' : c;
    if (c == '>') tag = false;
    if (out.size() >= kLongestWords) return out + "...";
  }
  return out;
}

// The message of the error forms that W&B and MLflow use.
std::string message_in(const nlohmann::json& body) {
  if (!body.is_object()) return "";
  if (body.contains("message") && body["message"].is_string()) return body["message"];
  if (body.contains("errors") && body["errors"].is_array() && !body["errors"].empty())
    return message_in(body["errors"][0]);
  if (!body.contains("error")) return "";
  return body["error"].is_string() ? body["error"].get<std::string>() : message_in(body["error"]);
}

}  // namespace

std::string words_of(const Reply& reply) {
  const auto body = parse_json(reply.body);
  const std::string message = body ? message_in(*body) : "";
  return fmt::format("HTTP {}: {}", reply.status,
                     plain(reply.sent.redacted(message.empty() ? reply.body : message)));
}

Delivered<void> RetryingClient::wait(int tried, const std::optional<double>& asked, const std::string& why) {
  if (asked && *asked > patience_.longest_asked_s)
    return tl::unexpected(
        DeliveryError{DeliveryError::kAll,
                      fmt::format("{}; the server asks to wait {:.0f} s: export again then", why, *asked)});
  const double doubled =
      std::min(patience_.first_pause_s * std::pow(2, tried - 1), patience_.longest_pause_s);
  std::uniform_real_distribution<double> jitter(1, 1.25);
  const double pause = asked ? *asked : doubled * jitter(random_);
  around_.note(fmt::format("{}; trying again in {:.1f} s", why, pause));
  if (around_.pause(pause)) return {};
  return tl::unexpected(DeliveryError{DeliveryError::kInterrupted, "interrupted"});
}

Delivered<Reply> RetryingClient::send(const Request& request, WorthAgain worth_again, const Look& look) {
  bool in_doubt = false;
  for (int tried = 1;; ++tried) {
    if (in_doubt && look) {
      SWEEP_GET(auto found, look());
      if (found) return std::move(*found);
    }
    auto reply = around_.wire(request);
    if (reply && !worth_again(reply->status)) return std::move(*reply);
    const bool reached = reply || reply.error().kind == WireError::kLost;
    const std::string why = reply ? words_of(*reply) : reply.error().sentence;
    if (!reply && reply.error().kind == WireError::kInterrupted)
      return tl::unexpected(DeliveryError{DeliveryError::kInterrupted, "interrupted"});
    if (!reply && reply.error().kind == WireError::kFinal)
      return tl::unexpected(DeliveryError{DeliveryError::kAll, why});
    if (tried >= (reached ? patience_.tries : patience_.tries_to_reach))
      return tl::unexpected(
          DeliveryError{DeliveryError::kAll, fmt::format("{}; given up after {} tries", why, tried)});
    in_doubt = in_doubt || reached;
    SWEEP_TRY(wait(tried, reply ? reply->retry_after_s : std::nullopt, why));
  }
}

}  // namespace sweep::exports
