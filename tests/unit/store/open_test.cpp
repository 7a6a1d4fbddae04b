// Files that are not as they should be: older, newer, foreign, damaged, locked, read-only, full disks.
#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "orchestrator/store/upgrade.h"
#include "schema/columns.h"
#include "store_fixture.h"

namespace sweep::store {
namespace {

using ::testing::Test;

std::string slurp(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

class OpenTest : public StoreTest {
 protected:
  Error refusal(Mode mode = Mode::kReadWrite, StoreDependencies dependencies = quick()) {
    return error_in(Store::open(path_, mode, std::move(dependencies)));
  }
  void spill(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }
  i64 pragma(const std::string& name) {
    auto db = must(Db::open(path_.string(), SQLITE_OPEN_READONLY, 1000, path_));
    return must(db->pragma(name));
  }
  std::string text_pragma(const std::string& name) {
    auto db = must(Db::open(path_.string(), SQLITE_OPEN_READONLY, 1000, path_));
    Transaction work(*db, Transaction::kRead);
    return work.one<std::string>("PRAGMA " + name).value_or("");
  }
};

TEST_F(OpenTest, ANewFileSaysWhatItIs) {
  open();
  EXPECT_EQ(pragma("application_id"), kApplicationId);
  EXPECT_EQ(pragma("user_version"), migrations().back().version);
  EXPECT_EQ(text_pragma("journal_mode"), "wal");
}

TEST_F(OpenTest, EveryTableIsStrict) {
  open();
  auto db = must(Db::open(path_.string(), SQLITE_OPEN_READONLY, 1000, path_));
  Transaction work(*db, Transaction::kRead);
  const char* tables =
      "SELECT count(*) FROM pragma_table_list WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND strict = "
      "?";
  EXPECT_EQ(work.one<i64>(tables, 0), 0);
  EXPECT_GE(work.one<i64>(tables, 1).value_or(0), 10);
}

TEST_F(OpenTest, ANetworkFilesystemGetsARollbackJournal) {
  StoreDependencies dependencies = quick();
  dependencies.network_filesystem = [](const fs::path&) { return true; };
  open(dependencies);
  EXPECT_EQ(text_pragma("journal_mode"), "delete");
  EXPECT_FALSE(fs::exists(path_.string() + "-wal"));
}

// The host that exports a folder sees a local filesystem where a run on another host sees a network one.
TEST_F(OpenTest, AFileThatSomebodyRunsKeepsItsJournal) {
  StoreDependencies far = quick();
  far.network_filesystem = [](const fs::path&) { return true; };
  auto run = must(Store::open(path_, Mode::kReadWrite, far));
  SweepRow row;
  row.name = "s";
  const i64 sweep = must(run->ensure_sweep(row)).id;
  ASSERT_FALSE(must(run->take_lease(sweep)));
  open();
  EXPECT_EQ(text_pragma("journal_mode"), "delete");
  must(run->release_lease(sweep));
  run.reset();
  open();
  EXPECT_EQ(text_pragma("journal_mode"), "wal") << "nobody runs it any more";
}

TEST_F(OpenTest, AReaderSeesNothingOfAWriteThatWasCutOff) {
  StoreDependencies far = quick();
  far.network_filesystem = [](const fs::path&) { return true; };
  must(Store::open(path_, Mode::kReadWrite, far));
  const pid_t writer = ::fork();
  if (writer == 0) {
    sqlite3* db = nullptr;
    const bool written =
        sqlite3_open(path_.c_str(), &db) == SQLITE_OK &&
        sqlite3_exec(
            db,
            "PRAGMA cache_size = 1; BEGIN; INSERT INTO meta SELECT 'half', 'written';"
            "CREATE TABLE half AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 9999) "
            "SELECT i, hex(randomblob(99)) FROM n",
            nullptr, nullptr, nullptr) == SQLITE_OK;
    ::_exit(written ? 0 : 1);  // as kill -9: the journal stays
  }
  int status = -1;
  ::waitpid(writer, &status, 0);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(fs::exists(path_.string() + "-journal"));
  auto reader = must(Store::open(path_, Mode::kReadOnly, far));
  const auto rows = must(reader->query("SELECT count(*) FROM sqlite_master WHERE name = 'half'", {}));
  EXPECT_EQ(std::get<i64>(rows.rows.at(0).at(0)), 0);
}

TEST_F(OpenTest, ALocalFilesystemIsNotTakenForANetworkOne) {
  EXPECT_FALSE(on_network_filesystem(dir_ / "not" / "yet.db"));
  EXPECT_FALSE(on_network_filesystem("/dev/shm/not_yet.db"));
}

TEST_F(OpenTest, AFilesystemThatNobodyListedCountsAsShared) {
  EXPECT_TRUE(on_network_filesystem("/proc/not_yet.db"));
}

TEST_F(OpenTest, ANewerFileIsRefused) {
  open();
  sql("PRAGMA user_version = 99");
  for (const Mode mode : {Mode::kReadWrite, Mode::kReadOnly}) {
    EXPECT_THAT(refusal(mode), IsError(ErrorKind::kUnsupported, path_.string()));
  }
}

TEST_F(OpenTest, AVersionThatNoSweepWritesIsRefused) {
  open();
  sql("PRAGMA user_version = -3");
  for (const Mode mode : {Mode::kReadWrite, Mode::kReadOnly})
    EXPECT_THAT(refusal(mode), IsError(ErrorKind::kUnreadable, path_.string()));
}

TEST_F(OpenTest, AForeignDatabaseIsRefusedAndLeftAlone) {
  sql("CREATE TABLE mine(a)");
  const std::string before = slurp(path_);
  EXPECT_THAT(refusal(), IsError(ErrorKind::kUnreadable, path_.string()));
  EXPECT_EQ(slurp(path_), before);
}

// The migrations there are, and one that is to come.
std::vector<Migration> one_more(std::string_view sql) {
  std::vector<Migration> steps(migrations().begin(), migrations().end());
  steps.push_back({steps.back().version + 1, sql});
  return steps;
}

TEST_F(OpenTest, AnOlderFileIsBackedUpThenUpgradedInOneTransaction) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  store_.reset();
  const int now = migrations().back().version;
  const auto steps = one_more("CREATE TABLE added(a INTEGER) STRICT; INSERT INTO added VALUES (7)");
  {
    auto db = must(Db::open(path_.string(), SQLITE_OPEN_READWRITE, 1000, path_));
    must(bring_up_to_date(*db, steps));
    EXPECT_EQ(must(db->pragma("user_version")), now + 1);
    Transaction work(*db, Transaction::kRead);
    EXPECT_EQ(work.one<i64>("SELECT a FROM added"), 7);
    EXPECT_EQ(work.one<std::string>("SELECT outcome FROM results"), "ok");
  }
  path_ = path_.string() + fmt::format(".v{}.bak", now);
  EXPECT_EQ(pragma("user_version"), now);
  auto backup = open(quick(), Mode::kReadOnly);
  EXPECT_EQ(must(backup->results(sweep_)).size(), 1u);
}

TEST_F(OpenTest, AFailedUpgradeLeavesTheFileAsItWas) {
  open();
  const int now = migrations().back().version;
  const auto steps = one_more("CREATE TABLE half(a) ; SELECT * FROM nowhere");
  auto db = must(Db::open(path_.string(), SQLITE_OPEN_READWRITE, 1000, path_));
  const auto done = bring_up_to_date(*db, steps);
  EXPECT_NE(message_of(done).find(fmt::format("upgrade to version {} failed", now + 1)), std::string::npos);
  EXPECT_EQ(must(db->pragma("user_version")), now);
  Transaction work(*db, Transaction::kRead);
  EXPECT_FALSE(work.one<i64>("SELECT 1 FROM sqlite_schema WHERE name = 'half'"));
}

// Before the first release the tables changed eight times, under one application id.
TEST_F(OpenTest, AFileOfBeforeTheFirstReleaseIsRefusedAndLeftAlone) {
  for (const int version : {1, 2, 8}) {
    fs::remove(path_);
    sql(fmt::format("CREATE TABLE sweep(id INTEGER); PRAGMA user_version = {}; PRAGMA application_id = {}",
                    version, kUnreleasedId));
    const std::string before = slurp(path_);
    EXPECT_THAT(refusal(), IsError(ErrorKind::kUnsupported, path_.string())) << version;
    EXPECT_THAT(error_in(Store::open(path_, Mode::kReadOnly, quick())),
                IsError(ErrorKind::kUnsupported, path_.string()));
    EXPECT_EQ(slurp(path_), before);
    EXPECT_FALSE(fs::exists(path_.string() + "-wal"));
    EXPECT_FALSE(fs::exists(path_.string() + fmt::format(".v{}.bak", version)));
  }
}

// The grid prunes a configuration before its dp or grad_accum is known; the trial then carries 0 there.
TEST_F(OpenTest, AnAxisThatWasNeverResolvedIsNull) {
  start(1);
  plan_.push_back(entry(3));
  plan_[1].trial.dp = plan_[1].trial.grad_accum = 0, plan_[1].admitted = false;
  plan_[1].id = trial_id(plan_[1].trial);
  must(store_->sync_plan(sweep_, plan_, {}));
  const auto nulls =
      must(store_->query("SELECT trial FROM results WHERE dp IS NULL AND grad_accum IS NULL AND tp = 1"));
  EXPECT_EQ(nulls.rows, (std::vector<std::vector<Value>>{{plan_[1].id}}));
  const auto rows = must(store_->results(sweep_));
  EXPECT_EQ(rows[1].trial.dp, 0) << "the trial itself, and so its id, stays as it was";
  EXPECT_EQ(find_column("dp")->get(rows[1]), Value{});
}

TEST_F(OpenTest, ColumnsTheFileLacksAreReadAsTheirDefaultsWithoutWriting) {
  start(1);
  finish(plan_[0], Outcome::kOk, 5);
  store_.reset();
  sql("DROP VIEW results; ALTER TABLE trial DROP COLUMN threads; ALTER TABLE result DROP COLUMN util_sd");
  store_ = open(quick(), Mode::kReadOnly);
  const auto rows = must(store_->results(sweep_));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].trial.threads, Trial{}.threads);
  EXPECT_EQ(trial_id(rows[0].trial), rows[0].trial_id);
  const auto columns = must(store_->result_columns(sweep_, {.coded = {"threads"}, .numbers = {"util_sd"}}));
  EXPECT_EQ(columns.coded.at("threads").at(0), Value{Trial{}.threads});
  EXPECT_TRUE(std::isnan(columns.numbers.at("util_sd").at(0)));
  store_ = open();
  EXPECT_EQ(must(store_->query("SELECT threads, util_sd FROM results")).rows.at(0),
            (std::vector<Value>{Trial{}.threads, Value{}}));
}

TEST_F(OpenTest, APathThatIsTooLongForSqliteIsNamedAsTheReason) {
  auto folder = dir_;
  while (folder.string().size() < 500) folder /= std::string(100, 'x');
  fs::create_directories(folder);
  path_ = folder / "t.db";
  const auto error = refusal();
  EXPECT_EQ(error.kind, ErrorKind::kUnwritable);
  EXPECT_NE(error.message.find(fmt::format("{} bytes", path_.string().size())), std::string::npos)
      << error.message;
}

TEST_F(OpenTest, AFolderThatIsMissingIsNamedAsTheReason) {
  path_ = dir_ / "missing" / "t.db";
  const auto error = refusal();
  EXPECT_EQ(error.kind, ErrorKind::kUnwritable);
  EXPECT_NE(error.message.find(fmt::format("no folder '{}'", (dir_ / "missing").string())), std::string::npos)
      << error.message;
}

TEST_F(OpenTest, AFolderIsNoDatabase) {
  path_ = dir_;
  EXPECT_THAT(refusal(), IsError(ErrorKind::kUnreadable, path_.string()));
}

TEST_F(OpenTest, ReadingWhatIsNotThereNamesTheWayOut) {
  EXPECT_THAT(refusal(Mode::kReadOnly), IsError(ErrorKind::kNotFound, path_.string()));
  EXPECT_FALSE(fs::exists(path_));
  path_ = dir_ / "no" / "folder" / "x.db";
  EXPECT_THAT(refusal(), IsError(ErrorKind::kUnwritable, path_.string()));
}

TEST_F(OpenTest, BytesThatAreNoDatabaseAreRefused) {
  spill("step,mfu\n1,0.5\n" + std::string(5000, 'x'));
  EXPECT_THAT(refusal(), IsError(ErrorKind::kUnreadable, path_.string()));
}

TEST_F(OpenTest, ADamagedFileIsAnErrorNeverACrash) {
  start(50);
  store_.reset();
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  const std::string whole = slurp(path_);
  for (std::size_t at = 100; at < whole.size(); at += 4096) {
    std::string bytes = whole;
    for (std::size_t i = at; i < std::min(at + 600, bytes.size()); ++i) bytes[i] = static_cast<char>(i * 131);
    spill(bytes);
    auto store = Store::open(path_, Mode::kReadWrite, quick());
    if (!store) continue;
    const auto rows = (*store)->results(sweep_);
    const auto plan = (*store)->plan(sweep_);
    if (!plan) {
      EXPECT_NE(plan.error().message.find(path_.string()), std::string::npos) << plan.error().message;
    }
  }
  spill(whole.substr(0, whole.size() / 2));
  auto store = Store::open(path_, Mode::kReadWrite, quick());
  EXPECT_FALSE(store && (*store)->plan(sweep_) && (*store)->results(sweep_));
}

TEST_F(OpenTest, AReadOnlyFileIsRefusedForWritingAndReadFromAReadOnlyFolder) {
  start(1);
  store_.reset();
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  fs::permissions(path_, fs::perms::owner_read);
  fs::permissions(dir_, fs::perms::owner_read | fs::perms::owner_exec);
  // Root may write anywhere: let an unprivileged child look.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0) {
      if (::chown(dir_.c_str(), 65534, 65534) || ::chown(path_.c_str(), 65534, 65534) || ::setgid(65534) ||
          ::setuid(65534))
        ::_exit(3);
    }
    const bool refused = refusal().kind == ErrorKind::kUnwritable;
    auto reader = Store::open(path_, Mode::kReadOnly, quick());
    const bool read = reader && (*reader)->plan(sweep_) && (*reader)->query("SELECT count(*) FROM results");
    ::_exit((refused ? 0 : 1) + (read ? 0 : 2));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  fs::permissions(dir_, fs::perms::owner_all);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: not refused, 2: not read, 3: no unprivileged user";
}

TEST_F(OpenTest, ALockedFileIsAClearErrorAfterTheTimeout) {
  start(1);
  auto other = must(Db::open(path_.string(), SQLITE_OPEN_READWRITE, 1000, path_));
  must(other->execute("BEGIN IMMEDIATE"));
  EXPECT_THAT(error_in(store_->beat(sweep_)), IsError(ErrorKind::kBusy, path_.string()));
  EXPECT_TRUE(store_->progress(sweep_)) << "readers go on";
  must(other->execute("ROLLBACK"));
  EXPECT_TRUE(store_->beat(sweep_));
}

TEST_F(OpenTest, AFullDiskStoresNothingOfTheBatchAndSaysWhatToDo) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  store_.reset();
  sql("PRAGMA wal_checkpoint(TRUNCATE)");
  StoreDependencies dependencies = quick();
  dependencies.most_pages = pragma("page_count") + 8;
  store_ = must(Store::open(path_, Mode::kReadWrite, dependencies));
  sql("DELETE FROM lease");
  must(store_->take_lease(sweep_));
  IngestBatch batch;
  batch.allocation = allocation_, batch.new_offset = 77;
  batch.rank_records = {record(attempt, 0, 20000), record(attempt, 1, 2)};
  const auto stored = store_->ingest(batch);
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().kind, ErrorKind::kDiskFull) << stored.error().message;
  EXPECT_EQ(stored.error().subject, path_.string());
  EXPECT_EQ(must(store_->open_allocations(sweep_)).at(0).offset, 0u);
  EXPECT_TRUE(must(store_->records_of(attempt.id)).records.empty());
  batch.rank_records = {record(attempt, 0, 2)};
  EXPECT_TRUE(store_->ingest(batch)) << "smaller ones still fit";
}

TEST_F(OpenTest, AFileSizeLimitStoresNothingOfTheBatchAndSaysWhatToDo) {
  start(1);
  const Attempt attempt = begin(plan_[0]);
  must(store_->release_lease(sweep_));
  store_.reset();
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = open();
    if (must(store->take_lease(sweep_))) ::_exit(4);
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200 << 10, 200 << 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    IngestBatch batch;
    batch.allocation = allocation_, batch.new_offset = 77;
    batch.rank_records = {record(attempt, 0, 50000)};
    const ErrorKind kind = error_in(store->ingest(batch)).kind;
    const bool clear = kind == ErrorKind::kDiskFull;
    const bool whole = must(store->records_of(attempt.id)).records.empty();
    ::_exit((clear ? 0 : 1) + (whole ? 0 : 2));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: another error, 2: something was stored, 4: no lease";
  store_ = open();
  EXPECT_EQ(must(store_->query("SELECT count(*) FROM step_sample")).rows[0][0], Value(i64{0}));
}

}  // namespace
}  // namespace sweep::store
