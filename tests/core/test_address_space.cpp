#include "lockstep/host/address_space.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <limits>
#include <new>
#include <system_error>

#include "lockstep/core/error.h"
#include "tests/memory_limit.h"

namespace lockstep {
namespace {

TEST(AddressSpace, WhatIsLeft) {
  EXPECT_EQ((host::AddressSpace{.limit = 0, .used = 5}.left()), std::numeric_limits<std::size_t>::max());
  EXPECT_EQ((host::AddressSpace{.limit = 7, .used = 5}.left()), 2u);
  EXPECT_EQ((host::AddressSpace{.limit = 7, .used = 9}.left()), 0u);
}

TEST(AddressSpace, ErrorsOfTheLibraryAreSaidInPlainWords) {
  EXPECT_EQ(host::explain(std::bad_alloc()),
            "[memory] out of memory: use a smaller batch, or fewer ranks on this host");
  EXPECT_EQ(host::explain(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
            "[threads] a thread could not be started");
  EXPECT_EQ(host::explain(Error("[conv2d] said already")), "[conv2d] said already");
}

TEST(AddressSpace, WhatIsLeftDecides) {
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limit = before;
  limit.rlim_cur = std::size_t{64} << 30;
  if (limit.rlim_cur > before.rlim_max) GTEST_SKIP() << "this process is limited already";
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_NO_THROW(host::check_address_space("a test", 1));
  EXPECT_THROW(host::check_address_space("a test", limit.rlim_cur), Error);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace lockstep
