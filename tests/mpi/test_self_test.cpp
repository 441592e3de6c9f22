// The test at the start of a job: it passes on every path and wire, and says on all ranks what one of them found wrong.
#include "lockstep/parallel/reduce/self_test.h"

#include <gtest/gtest.h>

#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

parallel::Domains pairs() {
  parallel::Domains d{.rank = world().rank()};
  for (int r = 0; r < world().size(); ++r) {
    d.domain_of.push_back(r / 2);
    if (r % 2 == 0) d.members.emplace_back();
    d.members.back().push_back(r);
  }
  return d;
}

TEST(SelfTest, PassesOnEveryPathAndWire) {
  const int rank = world().rank(), size = world().size();
  for (const parallel::Domains& domains : {parallel::Domains::nodes(world().topology(), rank, size),
                                           parallel::Domains::single_ranks(rank, size), pairs()}) {
    for (const parallel::Wire wire : {parallel::Wire::Exact, parallel::Wire::BF16, parallel::Wire::F16}) {
      for (const std::int64_t elements : {1, 5000, 100'003}) {
        SCOPED_TRACE(formatted("{} domains, wire {}, {} elements", domains.count(), static_cast<int>(wire), elements));
        EXPECT_NO_THROW(parallel::check_paths(
            world(), {.domains = domains, .reduction = {.wire = wire, .piece_bytes = 1 << 16}, .elements = elements}));
      }
    }
  }
}

TEST(SelfTest, AWrongSumOnOneRankIsNamedOnAll) {
  const std::vector<float> expected{1, 2, 3};
  std::vector<float> sums = expected;
  if (world().rank() == world().size() - 1) sums[1] = 2.5F;
  try {
    parallel::check_sums<float>(world(), "messages", sums, expected);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what())
                  .find("path messages: the sum of element 1 of 3 f32 is 2.5, MPI's own allreduce gives 2"),
              std::string::npos)
        << error.what();
  }
  EXPECT_NO_THROW(parallel::check_sums<float>(world(), "messages", expected, expected));
}

}  // namespace
}  // namespace lockstep::test
