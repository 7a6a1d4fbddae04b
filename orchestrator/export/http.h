// Http: one HTTPS conversation at a time over libcurl. TLS certificates are always checked; proxies come from
// the environment as libcurl reads it (https_proxy, http_proxy, no_proxy); redirects are not followed, since
// they could carry a key elsewhere. The only place that knows libcurl.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/expected.h"
#include "orchestrator/export/credentials.h"

namespace sweep::exports {

struct Request {
  std::string method, url, body;
  std::string content_type = "application/json";
  bool status_alone = false;  // the reply's body is not waited for
};

struct Reply {
  long status = 0;
  std::string body;
  std::optional<double> retry_after_s;  // the wait that the server asks for
  Credentials sent{};                   // a body may repeat them: whoever shows it redacts it (words_of)
};

// No whole answer came.
struct WireError {
  enum Kind {
    kFinal,        // trying again cannot help: a certificate, an address that is none
    kUnreachable,  // nothing was sent
    kLost,         // the request may have been carried out
    kInterrupted,
  };
  Kind kind = kFinal;
  std::string sentence;
};

// How trackers see the network; tests put their own in its place.
using Wire = std::function<tl::expected<Reply, WireError>(const Request&)>;

struct HttpOptions {
  std::filesystem::path ca;  // certificates to trust instead of the system's; empty: the system's
  double timeout_s = 60;     // for one request, from connecting to the last byte
  std::function<bool()> interrupted;
};

class Http {
 public:
  static Expected<std::unique_ptr<Http>> make(HttpOptions, Credentials);
  ~Http();
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  tl::expected<Reply, WireError> send(const Request&);

 private:
  Http(void* curl, HttpOptions options, Credentials credentials);
  void* curl_;
  HttpOptions options_;
  Credentials credentials_;
};

// "https://host:8080/base" without a slash at its end. Error: no http(s) address, or one that carries a
// password, a query or a fragment.
Expected<std::string> checked_base(std::string_view url, std::string_view named_by);
std::string host_of(std::string_view base);          // "host", without the port
bool sends_in_the_clear(std::string_view base);      // http:// to another machine
std::string escaped_for_url(std::string_view text);  // percent-encoded

}  // namespace sweep::exports
