// Every collective of every CPU backend against a straightforward sum, at 1, 2 and 4 ranks.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "tests/unit/comm/forked_ranks.h"

namespace sweep::comm {
namespace {

using ::sweep::testing::require;
using ::sweep::testing::run_ranks;
using ::testing::Each;

struct Case {
  std::string backend;
  int world;
};

class Collectives : public ::testing::TestWithParam<Case> {
 protected:
  void expect_all(const std::function<void(c10d::Backend&, int rank, int world)>& body) {
    const auto statuses = run_ranks(GetParam().world, [&](const GroupOptions& options) {
      const bool staged = GetParam().backend == "staged";  // Gloo through copies, as for device tensors
      const BackendPtr backend = staged
                                     ? make_staged(make_gloo(options))
                                     : make_backend(*choice_from<CommBackend>(GetParam().backend), options);
      body(*backend, options.rank, options.world);
    });
    EXPECT_THAT(statuses, Each(0));
  }
};

// Small integers: exact in every type, also as sums over four ranks. Differs by rank and position.
at::Tensor values(int rank, std::int64_t n, c10::ScalarType type) {
  return (at::arange(n, at::kLong).remainder(13) + rank + 1).to(type);
}

std::string name_of(c10::ScalarType type) {
  return c10::toString(type);
}

const std::vector<c10::ScalarType> kTypes{at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong};
// One element; below and above the one-round limit; several pieces and a ragged end; for one type more than
// the whole ring.
const std::vector<std::int64_t> kSizes{1, 1000, 5001, 150'001};
std::vector<std::int64_t> sizes_for(c10::ScalarType type) {
  auto sizes = kSizes;
  if (type == at::kFloat) sizes.push_back(1'200'001);
  return sizes;
}

TEST_P(Collectives, AllreduceSumsAveragesAndFindsTheLargest) {
  expect_all([](c10d::Backend& backend, int rank, int world) {
    for (const auto type : kTypes) {
      for (const auto n : sizes_for(type)) {
        at::Tensor sum = at::zeros({n}, type);
        for (int r = 0; r < world; ++r) sum += values(r, n, type);
        for (const auto op : {c10d::ReduceOp::SUM, c10d::ReduceOp::AVG, c10d::ReduceOp::MAX}) {
          if (op == c10d::ReduceOp::AVG && type == at::kLong)
            continue;  // Gloo truncates otherwise than we do
          std::vector<at::Tensor> tensors{values(rank, n, type)};
          c10d::AllreduceOptions options;
          options.reduceOp = op;
          wait(*backend.allreduce(tensors, options));
          const at::Tensor expected = op == c10d::ReduceOp::SUM   ? sum
                                      : op == c10d::ReduceOp::AVG ? (sum.to(at::kDouble) / world).to(type)
                                                                  : values(world - 1, n, type);
          require(at::equal(tensors[0], expected), name_of(type) + " allreduce of " + std::to_string(n));
        }
      }
    }
  });
}

TEST_P(Collectives, BroadcastGatherScatterAndExchange) {
  expect_all([](c10d::Backend& backend, int rank, int world) {
    for (const auto type : kTypes) {
      for (const auto n : kSizes) {
        const std::string what = name_of(type) + " of " + std::to_string(n);
        std::vector<at::Tensor> one{values(rank, n, type)};
        c10d::BroadcastOptions from_last;
        from_last.rootRank = world - 1;
        wait(*backend.broadcast(one, from_last));
        require(at::equal(one[0], values(world - 1, n, type)), "broadcast " + what);

        at::Tensor mine = values(rank, n, type), all = at::zeros({n * world}, type);
        wait(*backend._allgather_base(all, mine));
        for (int r = 0; r < world; ++r) {
          require(at::equal(all.narrow(0, r * n, n), values(r, n, type)), "allgather " + what);
        }
        at::Tensor wide = values(rank, n * world, type), part = at::zeros({n}, type);
        wait(*backend._reduce_scatter_base(part, wide));
        at::Tensor sum = at::zeros({n}, type);
        for (int r = 0; r < world; ++r) sum += values(r, n * world, type).narrow(0, rank * n, n);
        require(at::equal(part, sum), "reduce_scatter " + what);

        at::Tensor exchanged = at::zeros({n * world}, type);
        std::vector<std::int64_t> even_in, even_out;
        wait(*backend.alltoall_base(exchanged, wide, even_out, even_in));
        for (int r = 0; r < world; ++r) {
          const at::Tensor sent = values(r, n * world, type).narrow(0, rank * n, n);
          require(at::equal(exchanged.narrow(0, r * n, n), sent), "alltoall " + what);
        }
      }
    }
    wait(*backend.barrier());
  });
}

TEST_P(Collectives, ExchangesUnevenParts) {
  expect_all([](c10d::Backend& backend, int rank, int world) {
    // Rank a sends (a + 1) * (b + 1) * 7001 rows to rank b: some parts fit a piece, others do not.
    const auto part = [](int from, int to) { return std::int64_t{from + 1} * (to + 1) * 7001; };
    std::vector<std::int64_t> in, out;
    std::int64_t in_rows = 0, out_rows = 0;
    for (int r = 0; r < world; ++r) {
      in_rows += in.emplace_back(part(rank, r));
      out_rows += out.emplace_back(part(r, rank));
    }
    at::Tensor input = at::full({in_rows, 3}, rank, at::kFloat),
               output = at::full({out_rows, 3}, -1, at::kFloat);
    auto out_splits = out;  // Gloo moves from its arguments
    wait(*backend.alltoall_base(output, input, out_splits, in));
    std::int64_t offset = 0;
    for (int r = 0; r < world; ++r) {
      require(at::equal(output.narrow(0, offset, out[r]), at::full({out[r], 3}, r, at::kFloat)),
              "part of a rank");
      offset += out[r];
    }
  });
}

TEST_P(Collectives, SendsAroundARing) {
  expect_all([](c10d::Backend& backend, int rank, int world) {
    if (world == 1) return;
    const int next = (rank + 1) % world, previous = (rank + world - 1) % world;
    for (const auto n : sizes_for(at::kFloat)) {
      std::vector<at::Tensor> mine{values(rank, n, at::kFloat)}, theirs{at::zeros({n}, at::kFloat)};
      const auto sending =
          backend.send(mine, next, 3);  // larger than a mailbox: both must move on while either waits
      const auto receiving = backend.recv(theirs, previous, 3);
      wait(*sending);
      wait(*receiving);
      require(at::equal(theirs[0], values(previous, n, at::kFloat)), "ring of " + std::to_string(n));
    }
  });
}

TEST_P(Collectives, ManyAtOnceKeepTheirOrder) {
  expect_all([](c10d::Backend& backend, int rank, int world) {
    std::vector<std::vector<at::Tensor>> buffers;
    std::vector<c10::intrusive_ptr<c10d::Work>> works;
    for (int i = 0; i < 40; ++i) {
      buffers.push_back({at::full({(i % 4 + 1) * 50'000}, rank + i, at::kFloat)});
      works.push_back(backend.allreduce(buffers.back()));
    }
    for (int i = 39; i >= 0; --i) wait(*works[i]);
    for (int i = 0; i < 40; ++i) {
      const auto expected = static_cast<double>(world * i + world * (world - 1) / 2);
      require(at::equal(buffers[i][0], at::full_like(buffers[i][0], expected)), "work " + std::to_string(i));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Collectives,
                         ::testing::Values(Case{"shm", 1}, Case{"shm", 2}, Case{"shm", 4}, Case{"gloo", 1},
                                           Case{"gloo", 2}, Case{"gloo", 4}, Case{"staged", 1},
                                           Case{"staged", 2}, Case{"staged", 4}),
                         [](const auto& info) {
                           return info.param.backend + std::to_string(info.param.world);
                         });

TEST(ShmBackend, SumsBf16InFp32AndRoundsOnce) {
  const auto statuses = run_ranks(4, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    // 256 + 1 is lost in bf16 (8 bits), so summing in bf16 would give 256; in fp32 it is 259, rounded once to
    // 260.
    std::vector<at::Tensor> tensors{at::full({5000}, options.rank == 0 ? 256 : 1, at::kBFloat16)};
    wait(*backend->allreduce(tensors));
    require(at::equal(tensors[0], at::full({5000}, 260, at::kBFloat16)), "sum of bf16");
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmBackend, GivesEveryRankTheSameBits) {
  const auto statuses = run_ranks(4, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    std::vector<at::Tensor> sum{(values(options.rank, 100'003, at::kFloat) * 0.1f).sin()};
    at::Tensor expected = at::zeros({100'003});
    for (int r = 0; r < 4; ++r) expected += (values(r, 100'003, at::kFloat) * 0.1f).sin();  // in rank order
    wait(*backend->allreduce(sum));
    require(at::equal(sum[0], expected), "bits of a sum in rank order");
  });
  EXPECT_THAT(statuses, Each(0));
}

// The message of the exception that body throws.
std::string thrown_by(const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::DistError& error) {
    return error.what();
  }
  return "";
}

// Rank 0 waits in one group for what rank 1 sends only once it has all of rank 0's message in the other
// group.
TEST(ShmBackend, AWaitMovesTheOtherGroupsOn) {
  const auto statuses = run_ranks(2, [](const GroupOptions& options) {
    GroupOptions of_other = options;
    of_other.name = "other";
    const BackendPtr group = make_shm(options), other = make_shm(of_other);
    const std::int64_t n = 1 << 20;  // 4 MiB, twice what a mailbox holds
    std::vector<at::Tensor> large{values(0, n, at::kFloat)}, word{at::zeros({1})};
    if (options.rank == 0) {
      const auto sending = other->send(large, 1, 0);
      wait(*group->recv(word, 1, 0));
      wait(*sending);
      return;
    }
    std::vector<at::Tensor> got{at::zeros({n})};
    wait(*other->recv(got, 0, 0));
    wait(*group->send(word, 0, 0));
    require(at::equal(got[0], large[0]), "the message of the other group");
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmBackend, SurvivorsNoticeADeadPeer) {
  const auto statuses = run_ranks(3, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    wait(*backend->barrier());
    if (options.rank == 1) raise(SIGKILL);
    std::vector<at::Tensor> tensors{at::zeros({100'000})};
    const auto message = thrown_by([&] { wait(*backend->allreduce(tensors)); });
    require(message.find("rank 1 died") != std::string::npos, "names the dead rank: " + message);
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[2], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[1]));
}

TEST(ShmBackend, AbortEndsThePeers) {
  const auto statuses = run_ranks(3, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    std::vector<at::Tensor> tensors{at::zeros({100'000})};
    if (options.rank == 2) {
      backend->abort();
      // Stays alive until the others have noticed: only the abort can have told them.
      std::vector<at::Tensor> never{at::zeros({1})};
      thrown_by([&] { wait(*backend->recv(never, 0, 1)); });
      return;
    }
    const auto message = thrown_by([&] { wait(*backend->allreduce(tensors)); });
    require(message.find("rank 2 gave up") != std::string::npos, "names who gave up: " + message);
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmBackend, ALatePeerIsATimeoutThatNamesIt) {
  const auto statuses = run_ranks(2, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    if (options.rank == 1) {
      std::vector<at::Tensor> word{at::zeros({1})};
      wait(*backend->recv(word, 0, 0));  // until rank 0 has seen its timeout
      return;
    }
    c10d::BarrierOptions soon;
    soon.timeout = std::chrono::milliseconds(50);
    const auto message = thrown_by([&] { wait(*backend->barrier(soon)); });
    require(message.find("waited for rank 1 longer than 50 ms") != std::string::npos,
            "names the late rank: " + message);
    std::vector<at::Tensor> word{at::zeros({1})};
    wait(*backend->send(word, 1, 0));
  });
  EXPECT_THAT(statuses, Each(0));
}

TEST(ShmBackend, RefusesWhatItCannotReduce) {
  const auto statuses = run_ranks(1, [](const GroupOptions& options) {
    const BackendPtr backend = make_shm(options);
    std::vector<at::Tensor> bytes{at::zeros({4}, at::kByte)};
    bool refused = false;
    try {
      backend->allreduce(bytes);
    } catch (const c10::NotImplementedError&) {
      refused = true;
    }
    require(refused, "allreduce of bytes is refused");
  });
  EXPECT_THAT(statuses, Each(0));
}

}  // namespace
}  // namespace sweep::comm
