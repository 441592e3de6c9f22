#include "lockstep/io/isolated_read.h"

#include <sys/mman.h>
#include <csignal>
#include <cstdlib>

#include "lockstep/io/child_process.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

// How a child ends that does this, and whether it had sent something before.
std::string end_of(const ChildLimits& limits, const std::function<void(int)>& work) {
  ChildProcess child(limits, work);
  std::byte byte{};
  EXPECT_FALSE(child.read({&byte, 1}));
  return child.wait();
}

TEST(ChildProcess, SendsWhatItReads) {
  ChildProcess child({}, [](int pipe) { write_or_exit(pipe, std::as_bytes(std::span("words"))); });
  std::array<std::byte, 6> words{};
  ASSERT_TRUE(child.read(words));
  EXPECT_STREQ(reinterpret_cast<const char*>(words.data()), "words");
  EXPECT_EQ(child.wait(), "exit status 0");
}

TEST(ChildProcess, EndsAloneWhenItCrashes) {
  EXPECT_TRUE(end_of({}, [](int) { raise(SIGSEGV); }).starts_with("signal 11 "));
  EXPECT_TRUE(end_of({}, [](int) { std::abort(); }).starts_with("signal 6 "));
  EXPECT_EQ(end_of({}, [](int) { throw Error("no"); }), "exit status 1");
}

TEST(ChildProcess, HasBoundedTime) {
  volatile std::uint64_t count = 0;
  const auto forever = [&](int) {
    while (true) count = count + 1;
  };
  EXPECT_TRUE(end_of({.seconds = 1}, forever).starts_with("signal "));
  EXPECT_EQ(count, 0u);
}

#ifndef __SANITIZE_ADDRESS__  // whose allocator has mapped what it will ever need
TEST(ChildProcess, HasBoundedMemory) {
  const auto large = [](int pipe) {
    const std::vector<char> memory(std::size_t{1} << 30, 'x');
    write_or_exit(pipe, std::as_bytes(std::span(memory).last(1)));
  };
  EXPECT_EQ(end_of({.memory = std::size_t{64} << 20}, large), "exit status 1");
}
#endif

TEST(ChildProcess, CannotWriteToSharedMemory) {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* value = static_cast<volatile int*>(memory);
  *value = 7;
  EXPECT_TRUE(end_of({}, [&](int) { *value = 8; }).starts_with("signal 11 "));
  EXPECT_EQ(*value, 7);
  munmap(memory, 4096);
}

TEST(IsolatedRead, GivesWhatReadImageGives) {
  const Checkpoint sample = sample_checkpoint();
  const std::vector<std::byte> bytes = serialize(sample);
  const Image here = read_image(bytes, "sample"), there = read_image_isolated(bytes, "sample");
  EXPECT_EQ(there.metadata, here.metadata);
  expect_same(there.tensors, here.tensors);
}

TEST(IsolatedRead, PassesErrorsOn) {
  std::vector<std::byte> bytes = serialize(sample_checkpoint());
  bytes.resize(bytes.size() / 2);
  std::string here, there;
  try {
    read_image(bytes, "sample");
  } catch (const Error& error) {
    here = error.what();
  }
  try {
    read_image_isolated(bytes, "sample");
  } catch (const Error& error) {
    there = error.what();
  }
  EXPECT_NE(here, "");
  EXPECT_EQ(there, here);
}

}  // namespace
}  // namespace lockstep::checkpoint
