#include "worker/rank/testimony.h"

#include <c10/util/Exception.h>

#include <new>

namespace sweep::rank {
namespace {

void say(RankRecord& record, Outcome outcome, std::string message) {
  record.outcome = outcome;
  record.message = std::move(message);
}

}  // namespace

void testify_exception(RankRecord& record) {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    say(record, Outcome::kOom, error.what_without_backtrace());
    record.oom_kind = OomKind::kDevice;
  } catch (const std::bad_alloc&) {
    say(record, Outcome::kOom, "the host has no memory left for this rank");
    record.oom_kind = OomKind::kHost;
  } catch (const c10::NotImplementedError& error) {
    say(record, Outcome::kUnsupported, error.what_without_backtrace());
  } catch (const c10::DistError& error) {
    say(record, Outcome::kCrash, error.what_without_backtrace());
    record.consequential = true;
  } catch (const c10::Error& error) {
    say(record, Outcome::kCrash, error.what_without_backtrace());
  } catch (const std::exception& error) {
    say(record, Outcome::kCrash, error.what());
  } catch (...) {
    say(record, Outcome::kCrash, "an exception of an unknown type");
  }
}

}  // namespace sweep::rank
