#include "lockstep/io/isolated_read.h"

#include <sys/mman.h>
#include <csignal>
#include <cstdlib>

#include "lockstep/io/child_process.h"
#include "lockstep/io/image_read.h"
#include "tests/checkpoint/fixtures.h"
#include "tests/memory_limit.h"

namespace lockstep::checkpoint {
namespace {

// How a child ends that does this, and whether it had sent something before.
std::string end_of(const io::ChildLimits& limits, const std::function<void(int)>& work) {
  io::ChildProcess child(limits, work);
  std::byte byte{};
  EXPECT_FALSE(child.read({&byte, 1}));
  return child.wait();
}

TEST(ChildProcess, SendsWhatItReads) {
  io::ChildProcess child({}, [](int pipe) { io::write_or_exit(pipe, std::as_bytes(std::span("words"))); });
  std::array<std::byte, 6> words{};
  ASSERT_TRUE(child.read(words));
  EXPECT_STREQ(reinterpret_cast<const char*>(words.data()), "words");
  EXPECT_EQ(child.wait(), "exit status 0");
  EXPECT_EQ(child.wait(), "an unknown status (it was asked for before)") << "and not that of another child";
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

TEST(ChildProcess, HasBoundedMemory) {
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  const auto large = [](int pipe) {
    const std::vector<char> memory(std::size_t{1} << 30, 'x');
    io::write_or_exit(pipe, std::as_bytes(std::span(memory).last(1)));
  };
  EXPECT_EQ(end_of({.memory = std::size_t{64} << 20}, large), "exit status 1");
}

TEST(ChildProcess, CannotWriteToSharedMemory) {
  void* memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* value = static_cast<volatile int*>(memory);
  *value = 7;
  EXPECT_TRUE(end_of({}, [&](int) { *value = 8; }).starts_with("signal 11 "));
  EXPECT_EQ(*value, 7);
  munmap(memory, 4096);
}

TEST(IsolatedRead, GivesWhatAnImageReaderGives) {
  const Checkpoint sample = sample_checkpoint();
  const std::vector<std::byte> bytes = serialize(sample);
  const io::ImageReader here(bytes, "sample");
  io::IsolatedImage there(bytes, "sample");
  EXPECT_EQ(there.metadata(), here.metadata());
  EXPECT_EQ(there.metadata(), sample.metadata);
  ASSERT_EQ(here.tensors().size(), there.tensors().size());
  std::vector<io::NamedTensor> all;
  for (std::size_t i = 0; i < there.tensors().size(); ++i) all.push_back({there.tensors()[i].name, there.read(i)});
  expect_same(all, sample.tensors);
  for (std::size_t i = all.size() - 1; i > all.size() - 8; --i) {  // in any order
    const Tensor tensor = here.read(i), other = there.read(i);
    EXPECT_EQ(here.tensors()[i].shape, other.shape());
    EXPECT_EQ(here.tensors()[i].dtype, other.dtype());
    EXPECT_TRUE(std::equal(tensor.raw(), tensor.raw() + tensor.bytes(), other.raw())) << i;
  }
}

TEST(IsolatedRead, GivesRows) {
  const Checkpoint sample = sample_checkpoint();
  const std::vector<std::byte> bytes = serialize(sample);
  const io::ImageReader here(bytes, "sample");
  io::IsolatedImage there(bytes, "sample");
  const auto found = std::ranges::find(here.tensors(), "optimizer/momentum/fc.weight", &io::TensorInfo::name);
  const auto index = static_cast<std::size_t>(found - here.tensors().begin());
  const Tensor whole = here.read(index);
  for (const Range rows : {Range{0, 10}, Range{3, 4}, Range{7, 10}, Range{5, 5}}) {
    const Tensor expected = io::copy_rows(whole, rows);
    for (const Tensor& part : {here.read_rows(index, rows), there.read_rows(index, rows)}) {
      EXPECT_EQ(part.shape(), Shape({rows.size(), 64}));
      EXPECT_TRUE(std::equal(expected.raw(), expected.raw() + expected.bytes(), part.raw()));
    }
  }
  const std::string error = error_of([&] { here.read_rows(index, {8, 11}); });
  EXPECT_NE(error.find("has shape (10, 64), expected one with rows 8 to 11"), std::string::npos) << error;
  EXPECT_EQ(error_of([&] { there.read_rows(index, {8, 11}); }), error);
}

TEST(IsolatedRead, GoesOnAfterATensorThatItsChecksumDenies) {
  Checkpoint sample{.tensors = {}, .metadata = "{}"};
  for (const char* name : {"model/a", "model/b", "model/c"})
    sample.tensors.push_back({name, random_tensor({100}, DType::F32, static_cast<std::uint64_t>(name[6]))});
  std::vector<std::byte> bytes = serialize(sample);
  const auto values = std::as_bytes(sample.tensors[1].tensor.data<float>());
  const auto found = std::search(bytes.begin(), bytes.end(), values.begin(), values.end());
  ASSERT_NE(found, bytes.end());
  *found ^= std::byte{1};
  io::IsolatedImage image(bytes, "sample");
  image.read(0);
  const std::string error = error_of([&] { image.read(1); });
  EXPECT_NE(error.find("XXH3-64 of the values of \"model/b\""), std::string::npos) << error;
  const Tensor last = image.read(2), &expected = sample.tensors[2].tensor;
  EXPECT_TRUE(std::equal(last.raw(), last.raw() + last.bytes(), expected.raw()));
}

TEST(IsolatedRead, PassesErrorsOn) {
  std::vector<std::byte> bytes = serialize(sample_checkpoint());
  bytes.resize(bytes.size() / 2);
  const std::string here = error_of([&] { io::ImageReader(bytes, "sample"); });
  EXPECT_NE(here, "no error");
  EXPECT_EQ(error_of([&] { io::IsolatedImage(bytes, "sample"); }), here);
}

// Readers of two files that are open at once, and one while a file is written: HDF5 keeps them apart.
TEST(ImageReader, OfTwoFilesAtOnce) {
  const Checkpoint first = sample_checkpoint(1), second = sample_checkpoint(2);
  const std::vector<std::byte> a = serialize(first);
  const io::ImageReader of_first(a, "first");
  const std::vector<std::byte> b = serialize(second);
  const io::ImageReader of_second(b, "second");
  EXPECT_EQ(of_first.metadata(), first.metadata);
  EXPECT_EQ(of_second.metadata(), second.metadata);
  std::vector<io::NamedTensor> read_first, read_second;
  for (std::size_t i = 0; i < of_first.tensors().size(); ++i) {
    read_first.push_back({of_first.tensors()[i].name, of_first.read(i)});
    read_second.push_back({of_second.tensors()[i].name, of_second.read(i)});
  }
  expect_same(read_first, first.tensors);
  expect_same(read_second, second.tensors);
}

}  // namespace
}  // namespace lockstep::checkpoint
