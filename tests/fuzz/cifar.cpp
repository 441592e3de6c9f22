// CIFAR's binary records.
#include "data/datasets/cifar.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {
constexpr std::size_t kRecords = 2, kRecord = 1 + 3 * 32 * 32;
}

std::vector<Bytes> seeds() { return {Bytes(kRecords * kRecord, 7)}; }

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  const auto file = input_file("batch.bin", {data, size});
  expect_answer([&] { lockstep::datasets::read_cifar({.files = {file}, .records = kRecords}); });
  return 0;
}
