#include "bench_kernels/step/data_loader.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "bench_kernels/kernels/counting_allocator.h"

namespace sweep::step {
namespace {

using TokenId = std::uint32_t;  // type of a token in the file
constexpr parallel::ScratchUse kDataUse = parallel::in_checkpoint_folder("data", "the step's tokens");

}  // namespace

DataLoader::DataLoader(const Trial& t, const shape::Place& place, const TokenSource& tokens,
                       const std::filesystem::path& folder)
    : trial_(t),
      place_(place),
      first_row_(place.dp * t.grad_accum * t.micro_batch_size),
      tokens_(t.grad_accum * t.micro_batch_size * (t.seq_len + 1)),
      file_(0, folder, kDataUse) {
  if (t.data == DataSource::kText) table_.emplace(t.spec.vocab_size);
  write(tokens);
  if (t.data_ahead > 0) thread_ = std::thread([this] { read_ahead(); });
}

DataLoader::~DataLoader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DataLoader::write(const TokenSource& token) {
  const i64 length = trial_.seq_len + 1;
  std::vector<TokenId> ids;
  std::string text;
  i64 at = 0;
  const auto put = [&](const auto& bytes) {
    const auto size = static_cast<std::int64_t>(bytes.size() * sizeof(bytes[0]));
    file_.write(bytes.data(), size, std::exchange(at, at + size));
  };
  for (i64 row = 0; row < tokens_ / length; ++row) {
    ids.clear(), text.clear();
    for (i64 place = 0; place < length; ++place) {
      const i64 id = token(first_row_ + row, place);
      table_ ? table_->write(id, text) : ids.push_back(static_cast<TokenId>(id));
    }
    table_ ? put(text) : put(ids);
  }
  file_.sync();
  file_.forget_cached();
}

std::vector<i64> DataLoader::read_tokens() const {
  std::vector<i64> out;
  out.reserve(static_cast<std::size_t>(tokens_));
  const std::int64_t bytes = file_.size();
  if (table_) {
    std::string text(static_cast<std::size_t>(bytes), '\0');
    file_.read(text.data(), bytes, 0);
    table_->tokenise(text, out);
  } else {
    std::vector<TokenId> ids(static_cast<std::size_t>(bytes) / sizeof(TokenId));
    file_.read(ids.data(), bytes, 0);
    out.assign(ids.begin(), ids.end());
  }
  file_.forget_cached();  // the next step reads other bytes of a data set that memory does not hold
  const bool foreign =
      std::ranges::any_of(out, [this](i64 id) { return id < 0 || id >= trial_.spec.vocab_size; });
  if (foreign || static_cast<i64>(out.size()) != tokens_)
    throw std::runtime_error(
        "data: the file does not hold the tokens that were written to it; see the log of the "
        "node for errors of its disk.");
  return out;
}

Batch DataLoader::read() const {
  const std::vector<i64> tokens = read_tokens();
  const memory::HostScope host;
  return make_batch(trial_, at::kCPU, place_, [&](i64 row, i64 position) {
    return tokens[static_cast<std::size_t>((row - first_row_) * (trial_.seq_len + 1) + position)];
  });
}

void DataLoader::read_ahead() {
  std::unique_lock lock(mutex_);
  try {
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || static_cast<i64>(ready_.size()) < trial_.data_ahead; });
      if (ends_) return;
      lock.unlock();
      Batch batch = read();
      lock.lock();
      ready_.push_back(std::move(batch));
      changed_.notify_all();
    }
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    failed_ = std::current_exception();
    changed_.notify_all();
  }
}

Batch DataLoader::next() {
  if (trial_.data_ahead == 0) return read();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return failed_ || !ready_.empty(); });
  if (ready_.empty()) std::rethrow_exception(failed_);
  Batch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

}  // namespace sweep::step
