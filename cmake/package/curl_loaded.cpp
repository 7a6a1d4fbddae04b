// The functions of libcurl that are called, for programs that must start where it is not installed: it is loaded
// at the first call. Without it, or without one of these functions, each call fails in the way that curl says.
#include <curl/curl.h>
#include <dlfcn.h>

#include <cstdarg>

#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace {

void* library() {
  static void* const loaded = ::dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  return loaded;
}

// Null: not there.
template <class Function>
Function* named(const char* name, Function*) {
  return library() == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library(), name));
}

}  // namespace

#define LOADED(name) static auto* const real = named(#name, &name)

extern "C" {

CURLcode curl_global_init(long flags) {
  LOADED(curl_global_init);
  return real ? real(flags) : CURLE_FAILED_INIT;
}
CURL* curl_easy_init() {
  LOADED(curl_easy_init);
  return real ? real() : nullptr;
}
void curl_easy_cleanup(CURL* curl) {
  LOADED(curl_easy_cleanup);
  if (real) real(curl);
}
void curl_easy_reset(CURL* curl) {
  LOADED(curl_easy_reset);
  if (real) real(curl);
}
CURLcode curl_easy_perform(CURL* curl) {
  LOADED(curl_easy_perform);
  return real ? real(curl) : CURLE_FAILED_INIT;
}
const char* curl_easy_strerror(CURLcode code) {
  LOADED(curl_easy_strerror);
  return real ? real(code) : "libcurl.so.4 is not installed";
}
// The option says which type its value has (curl/curl.h, CURLOPTTYPE_*).
CURLcode curl_easy_setopt(CURL* curl, CURLoption option, ...) {
  LOADED(curl_easy_setopt);
  if (!real) return CURLE_FAILED_INIT;
  va_list values;
  va_start(values, option);
  CURLcode code;
  if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB)
    code = real(curl, option, va_arg(values, curl_off_t));
  else if (option >= CURLOPTTYPE_OBJECTPOINT)
    code = real(curl, option, va_arg(values, void*));
  else
    code = real(curl, option, va_arg(values, long));
  va_end(values);
  return code;
}
CURLcode curl_easy_getinfo(CURL* curl, CURLINFO info, ...) {
  LOADED(curl_easy_getinfo);
  if (!real) return CURLE_FAILED_INIT;
  va_list values;
  va_start(values, info);
  const CURLcode code = real(curl, info, va_arg(values, void*));
  va_end(values);
  return code;
}
CURLHcode curl_easy_header(CURL* curl, const char* name, size_t index, unsigned origin, int request,
                           curl_header** out) {
  LOADED(curl_easy_header);
  return real ? real(curl, name, index, origin, request, out) : CURLHE_NOT_BUILT_IN;
}
curl_slist* curl_slist_append(curl_slist* list, const char* text) {
  LOADED(curl_slist_append);
  return real ? real(list, text) : nullptr;
}
void curl_slist_free_all(curl_slist* list) {
  LOADED(curl_slist_free_all);
  if (real) real(list);
}
CURLU* curl_url() {
  LOADED(curl_url);
  return real ? real() : nullptr;
}
void curl_url_cleanup(CURLU* url) {
  LOADED(curl_url_cleanup);
  if (real) real(url);
}
CURLUcode curl_url_set(CURLU* url, CURLUPart part, const char* text, unsigned flags) {
  LOADED(curl_url_set);
  return real ? real(url, part, text, flags) : CURLUE_LACKS_IDN;
}
CURLUcode curl_url_get(CURLU* url, CURLUPart part, char** out, unsigned flags) {
  LOADED(curl_url_get);
  return real ? real(url, part, out, flags) : CURLUE_LACKS_IDN;
}
char* curl_easy_escape(CURL* curl, const char* text, int length) {
  LOADED(curl_easy_escape);
  return real ? real(curl, text, length) : nullptr;
}
void curl_free(void* memory) {
  LOADED(curl_free);
  if (real) real(memory);
}

}  // extern "C"
