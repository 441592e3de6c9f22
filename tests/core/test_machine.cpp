#include "lockstep/host/machine.h"

#include <gtest/gtest.h>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

using host::Machine;

TEST(Machine, HardwareThreadsOfOneCoreAreOneCore) {
  const Machine machine = Machine::made_up("numa:2 core:2 pu:2");
  EXPECT_EQ(machine.cpus(), (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(machine.cores(), (std::vector{0, 2, 4, 6}));
  EXPECT_EQ(machine.cores_of(std::vector{1, 2, 3}), (std::vector{0, 2}));
  EXPECT_EQ(machine.cores_of(std::vector{99}), std::vector{99});  // unknown: a core of its own
}

TEST(Machine, NumaNodesAreThoseThatHoldTheCpus) {
  const Machine machine = Machine::made_up("numa:2 core:4 pu:1");
  EXPECT_EQ(machine.numa_nodes(std::vector{5, 6}), "1");
  EXPECT_EQ(machine.numa_nodes(std::vector{3, 4}), "0,1");
  EXPECT_EQ(machine.numa_nodes(std::vector{99}), "");
}

TEST(Machine, NonsenseIsRefused) { EXPECT_THROW(Machine::made_up("kettle:2"), Error); }

TEST(Machine, ThisOneBindsToOneOfItsProcessorsAndBack) {
  const Machine& here = Machine::here();
  const std::vector<int> before = here.binding();
  ASSERT_FALSE(before.empty());
  ASSERT_TRUE(here.bind_process(std::vector{before.front()}));
  EXPECT_EQ(here.binding(), std::vector{before.front()});
  ASSERT_TRUE(here.bind_process(before));
  EXPECT_EQ(here.binding(), before);
}

}  // namespace
}  // namespace lockstep
