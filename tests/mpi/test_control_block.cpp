// ControlBlock against the canonical tree, for every grouping of ranks into domains.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lockstep/parallel/control/message_control.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "tests/mpi/reduction.h"

namespace lockstep::test {
namespace {

constexpr parallel::ControlSize kSize{5, 2};

class BlockRig {
 public:
  BlockRig(const parallel::Domains& domains, const parallel::WorldLayout& where)
      : comm_(world().duplicate()), transport_(comm_), memory_(comm_, domains, true) {
    const std::size_t row = parallel::SharedFlags::bytes(parallel::ControlBlock::kFlags),
                      bytes = parallel::ControlBlock::bytes(where, kSize);
    const auto all = memory_.segments(memory_.own(row + bytes));
    flags_ = std::make_unique<parallel::SharedFlags>(all, domains.local_rank());
    block_ = std::make_unique<parallel::ControlBlock>(transport_, *flags_, all[0].subspan(row, bytes), domains, where,
                                                      kSize);
  }
  parallel::ControlBlock& block() { return *block_; }
  parallel::SharedFlags& flags() { return *flags_; }
  void finish() {
    drive([this] { return block_->progress(); }, [this] { return block_->complete(); });
    block_->total();
  }

 private:
  comm::Communicator comm_;
  parallel::CommTransport transport_;
  parallel::NodeMemory memory_;
  std::unique_ptr<parallel::SharedFlags> flags_;
  std::unique_ptr<parallel::ControlBlock> block_;
};

// One step's block; finish() completes it, BlockRig's or MessageControl's.
template <class Control>
void check_step(Control& control, const parallel::WorldLayout& where, std::int64_t step, const std::string& what) {
  parallel::ControlBlock& block = control.block();
  block.words()[0] = static_cast<std::uint64_t>(step);
  block.words()[1] = ~std::uint64_t{0} - static_cast<std::uint64_t>(world().rank());
  block.begin();
  const Range mine = where.my_shards();
  for (std::int64_t shard = mine.begin; shard < mine.end; ++shard) {
    for (std::size_t i = 0; i < kSize.sums; ++i) {
      EXPECT_EQ(block.shard()[i], 0.0) << what;
      block.shard()[i] += number(shard, 100 * step + static_cast<std::int64_t>(i));
    }
    block.end_shard();
  }
  control.finish();
  expect_equal<double>(
      block.sums(),
      expected_sums<double>(where.tree.shards(), parallel::Wire::Exact, 100 * step, std::ssize(block.sums())), what);
  for (int r = 0; r < world().size(); ++r)
    EXPECT_EQ(block.word(r, 1), ~std::uint64_t{0} - static_cast<std::uint64_t>(r));
  block.check_same(0, "the step");
}

TEST(ControlBlock, AddsSumsOverShardsAndCarriesWords) {
  for (const std::int64_t shards : shard_counts()) {
    const parallel::WorldLayout where = layout(shards);
    for (const auto& [name, domains] : groupings()) {
      BlockRig rig(domains, where);
      for (std::int64_t step = 0; step < 5; ++step)
        check_step(rig, where, step, formatted("{}, {} shards, step {}", name, shards, step));
    }
    parallel::MessageControl messages(world(), where, kSize);
    check_step(messages, where, 0, formatted("messages alone, {} shards", shards));
  }
}

TEST(ControlBlock, WordsThatDifferNameTheRanks) {
  if (world().size() == 1) GTEST_SKIP() << "one rank cannot differ";
  const int last = world().size() - 1;
  for (const auto& [name, domains] : groupings()) {
    BlockRig rig(domains, layout(0));
    rig.block().words()[0] = world().rank() == last ? 41 : 40;
    rig.block().begin();
    rig.block().end_shard();
    rig.finish();
    const std::string error = error_of([&] { rig.block().check_same(0, "the answer"); });
    const int other = world().rank() == last ? 0 : last;
    EXPECT_NE(error.find("the answer differs"), std::string::npos) << name << ": " << error;
    for (const int r : {other, world().rank()})
      EXPECT_NE(error.find(formatted("rank {} has {}", r, r == last ? 41 : 40)), std::string::npos) << error;
  }
}

// The last rank posts nothing.
template <class Work>
std::string error_of_unfinished(parallel::MessageControl& control, const Work& work) {
  control.block().begin();
  if (world().rank() == world().size() - 1) return {};
  control.block().end_shard();
  return error_of([&] { work(); });
}

TEST(MessageControl, EndsOnACommunicatorThatIsOutOfUse) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else to wait for";
  const comm::Communicator comm = comm::Communicator::world();
  parallel::MessageControl control(comm, layout(0), kSize);
  const std::string error = error_of_unfinished(control, [&] {
    std::jthread other([&] { comm.poison("another thread gave up"); });
    control.finish();
  });
  const bool waited = world().rank() < world().size() - 1;
  EXPECT_EQ(error.find("another thread gave up") != std::string::npos, waited) << error;
  world().barrier();
}

TEST(MessageControl, EndsWhenAPeerIsKnownToHaveFailed) {
  if (world().size() == 1) GTEST_SKIP() << "nobody else to wait for";
  const comm::Communicator comm = comm::Communicator::world();
  const parallel::Domains domains = one_domain().domains;
  parallel::NodeMemory memory(comm, domains, true);
  parallel::SharedFlags flags(memory.segments(memory.own(parallel::SharedFlags::bytes(1))), domains.local_rank());
  parallel::MessageControl control(comm, layout(0), kSize);
  control.while_waiting([&] { flags.check_alive(); });
  if (world().rank() == world().size() - 1) flags.fail();
  bool ended = false;
  error_of_unfinished(control, [&] {
    try {
      control.finish();
    } catch (const PeerError&) {
      ended = true;
    }
  });
  EXPECT_EQ(ended, world().rank() < world().size() - 1);
  world().barrier();
}

TEST(ControlBlock, RefusesTooLittleMemory) {
  BlockRig rig(one_domain().domains, layout(0));
  const comm::Communicator comm = world().duplicate();
  parallel::CommTransport transport(comm);
  EXPECT_NE(error_of([&] {
              parallel::ControlBlock(transport, rig.flags(), {}, one_domain().domains, layout(0), kSize);
            }).find("0 bytes of memory, expected"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::test
