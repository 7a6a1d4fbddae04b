#include "orchestrator/export/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "schema/version.h"

namespace sweep::exports {
namespace {

constexpr std::size_t kLargestReply = 64u << 20;

struct HeaderList {
  curl_slist* first = nullptr;
  ~HeaderList() { curl_slist_free_all(first); }
  void add(const std::string& line) { first = curl_slist_append(first, line.c_str()); }
};

std::size_t take_bytes(char* bytes, std::size_t size, std::size_t count, void* into) {
  auto& body = *static_cast<std::string*>(into);
  if (body.size() + size * count > kLargestReply) return 0;
  body.append(bytes, size * count);
  return size * count;
}

// The transfer ends with the first byte of a body that nobody reads.
std::size_t take_none(char*, std::size_t, std::size_t, void*) {
  return 0;
}

Expected<void> start_libcurl() {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started == CURLE_OK) return {};
  return fail(ErrorKind::kNotFound, "libcurl.so.4",
              "libcurl.so.4, by which results are sent, is not installed or does not start; install libcurl "
              "(Debian, Ubuntu: libcurl4)");
}

int look_for_interrupt(void* options, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto& asked = static_cast<HttpOptions*>(options)->interrupted;
  return asked && asked() ? 1 : 0;
}

WireError::Kind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_ABORTED_BY_CALLBACK:
      return WireError::kInterrupted;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return WireError::kUnreachable;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_WRITE_ERROR:
    case CURLE_OUT_OF_MEMORY:
      return WireError::kFinal;
    default:
      return WireError::kLost;
  }
}

std::string way_out(CURLcode code) {
  if (code == CURLE_PEER_FAILED_VERIFICATION)
    return "; if the server's certificate comes from your own authority, name its file with --ca";
  if (code == CURLE_SSL_CACERT_BADFILE) return "; --ca takes a PEM file of certificates";
  return "";
}

// W&B says when its limit ends in a header of its own.
std::optional<double> asked_pause(CURL* curl, long status) {
  curl_off_t seconds = 0;
  if (curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds) == CURLE_OK && seconds > 0)
    return static_cast<double>(seconds);
  curl_header* header = nullptr;
  if (status == 429 && curl_easy_header(curl, "RateLimit-Reset", 0, CURLH_HEADER, -1, &header) == CURLHE_OK) {
    const double value = std::strtod(header->value, nullptr);
    if (value > 0) return value;
  }
  return std::nullopt;
}

void set_method(CURL* curl, const Request& request) {
  if (request.method == "GET") {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    return;
  }
  curl_easy_setopt(curl, CURLOPT_POST, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request.body.data());
}

void set_safety(CURL* curl, HttpOptions& options) {
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options.ca.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca.c_str());
    curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  const auto timeout_ms = static_cast<long>(options.timeout_s * 1000);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, std::min(timeout_ms, 20000L));
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_interrupt);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &options);
}

}  // namespace

Expected<std::unique_ptr<Http>> Http::make(HttpOptions options, Credentials credentials) {
  SWEEP_TRY(start_libcurl());
  CURL* curl = curl_easy_init();
  if (!curl) return fail("libcurl does not start; is its installation whole?");
  std::error_code ec;
  if (!options.ca.empty() && !std::filesystem::is_regular_file(options.ca, ec))
    return fail(
        fmt::format("--ca {}: no such file; a PEM file of certificates is expected", options.ca.string()));
  return std::unique_ptr<Http>(new Http(curl, std::move(options), std::move(credentials)));
}

Http::Http(void* curl, HttpOptions options, Credentials credentials)
    : curl_(curl), options_(std::move(options)), credentials_(std::move(credentials)) {}

Http::~Http() {
  curl_easy_cleanup(static_cast<CURL*>(curl_));
}

tl::expected<Reply, WireError> Http::send(const Request& request) {
  auto* curl = static_cast<CURL*>(curl_);
  curl_easy_reset(curl);  // keeps the connection
  Reply reply;
  reply.sent = credentials_;
  char error[CURL_ERROR_SIZE] = "";
  HeaderList headers;
  if (!credentials_.authorization.empty()) headers.add("Authorization: " + credentials_.authorization);
  if (request.method != "GET") headers.add("Content-Type: " + request.content_type);
  headers.add("Expect:");  // no pause before a large body
  set_safety(curl, options_);
  set_method(curl, request);
  const std::string agent = std::string("sweep/") + kVersion;
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.first);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, request.status_alone ? take_none : take_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  constexpr long kLastInterim = 199;
  if (code != CURLE_OK && !(request.status_alone && reply.status > kLastInterim)) {
    const std::string why = *error ? error : curl_easy_strerror(code);
    return tl::unexpected(
        WireError{kind_of(code), credentials_.redacted(request.url + ": " + why) + way_out(code)});
  }
  reply.retry_after_s = asked_pause(curl, reply.status);
  return reply;
}

namespace {

// An address as libcurl reads it. A part is empty where it is absent, or where the text is no address.
struct Address {
  explicit Address(std::string_view text) : handle(curl_url()) {
    valid = handle && curl_url_set(handle, CURLUPART_URL, std::string(text).c_str(), 0) == CURLUE_OK;
  }
  ~Address() { curl_url_cleanup(handle); }
  Address(const Address&) = delete;
  Address& operator=(const Address&) = delete;

  std::string part(CURLUPart which) const {
    char* text = nullptr;
    if (!valid || curl_url_get(handle, which, &text, 0) != CURLUE_OK) return "";
    std::string out = text;
    curl_free(text);
    return out;
  }

  CURLU* handle;
  bool valid;
};

}  // namespace

Expected<std::string> checked_base(std::string_view url, std::string_view named_by) {
  SWEEP_TRY(start_libcurl());
  std::string base(url);
  while (base.ends_with('/')) base.pop_back();
  const Address address(base);
  const bool unreadable = !address.valid && base.find('@') != std::string::npos;  // may hold a password
  if (unreadable || !address.part(CURLUPART_USER).empty() || !address.part(CURLUPART_PASSWORD).empty())
    return fail(
        fmt::format("{}: an address with a user or password in it; keys come from the environment or a file "
                    "(docs/exports.md)",
                    named_by));
  const std::string scheme = address.part(CURLUPART_SCHEME);
  const bool odd =
      std::any_of(base.begin(), base.end(), [](unsigned char c) { return c <= ' ' || c == 127; });
  if ((scheme != "https" && scheme != "http") || odd || base.find_first_of("?#") != std::string::npos)
    return fail(
        fmt::format("{}: '{}' is not an address; https://HOST[:PORT][/PATH] is expected", named_by, url));
  return base;
}

std::string host_of(std::string_view base) {
  const std::string host = Address(base).part(CURLUPART_HOST);
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

bool sends_in_the_clear(std::string_view base) {
  const std::string host = host_of(base);
  return Address(base).part(CURLUPART_SCHEME) == "http" && host != "localhost" && host != "::1" &&
         !host.starts_with("127.");
}

std::string escaped_for_url(std::string_view text) {
  char* escaped = curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size()));
  std::string out = escaped ? escaped : "";
  curl_free(escaped);
  return out;
}

}  // namespace sweep::exports
