// A checkpoint: envelope, hash, and the HDF5 behind them.
#include "lockstep/checkpoint/file.h"

#include "lockstep/checkpoint/weights.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

std::vector<io::NamedTensor> tensors() {
  std::vector<io::NamedTensor> all;
  all.push_back({"model/fc.weight", Tensor({3, 4}, DType::F32)});
  all.push_back({"model/bn.num_batches_tracked", Tensor({}, DType::I64)});
  all.push_back({"optimizer/momentum/fc.weight", Tensor({3, 4}, DType::F64)});
  return all;
}

}  // namespace

std::vector<Bytes> seeds() {
  const auto whole = scratch_file("whole.h5"), weights = scratch_file("weights.h5");
  checkpoint::save(whole, {.tensors = tensors(), .metadata = R"({"step": 3})"});
  checkpoint::save_weights(weights, tensors());
  return {content_of(whole), content_of(weights)};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const auto file = fuzz::input_file("checkpoint.h5", {data, size});
  fuzz::expect_answer([&] { checkpoint::verify(file); });
  fuzz::expect_answer([&] { checkpoint::load(file); });
  fuzz::expect_answer([&] { checkpoint::read_note(file); });
  return 0;
}
