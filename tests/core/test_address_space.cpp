#include "lockstep/core/address_space.h"

#include <gtest/gtest.h>

#include <limits>
#include <new>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

TEST(AddressSpace, WhatIsLeft) {
  EXPECT_EQ((AddressSpace{.limit = 0, .used = 5}.left()), std::numeric_limits<std::size_t>::max());
  EXPECT_EQ((AddressSpace{.limit = 7, .used = 5}.left()), 2u);
  EXPECT_EQ((AddressSpace{.limit = 7, .used = 9}.left()), 0u);
}

TEST(AddressSpace, ErrorsOfTheLibraryAreSaidInPlainWords) {
  EXPECT_EQ(explain(std::bad_alloc()),
            "[memory] out of memory: a smaller batch, or fewer ranks on this host, need less");
  EXPECT_EQ(explain(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
            "[threads] a thread could not be started");
  EXPECT_EQ(explain(Error("[conv2d] said already")), "[conv2d] said already");
}

TEST(AddressSpace, EnoughIsNoError) { EXPECT_NO_THROW(check_address_space("a test", 1)); }

}  // namespace
}  // namespace lockstep
