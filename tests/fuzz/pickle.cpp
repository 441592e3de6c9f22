// The pickles of CIFAR's Python version.
#include <string>

#include "data/datasets/cifar_python.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

constexpr std::size_t kRecords = 2;

// As Python 3 writes it: protocol 3, a dict of a list of labels and an array of bytes.
Bytes whole() {
  using namespace std::string_literals;
  std::string text = "\x80\x03}q\x00(X\x06\x00\x00\x00labelsq\x01]q\x02(K\x01K\x02"s;
  text +=
      "eX\x04\x00\x00\x00"s + "dataq\x03" + "cnumpy.core.multiarray\n_reconstruct\nq\x04" + "cnumpy\nndarray\nq\x05";
  text += "K\x00\x85q\x06"s + "C\x01" + "bq\x07\x87q\x08Rq\x09(K\x01K\x02M\x00\x0c\x86q\x0a"s +
          "cnumpy\ndtype\nq\x0bX\x02\x00\x00\x00u1"s;
  text +=
      "q\x0cK\x00K\x01\x87q\x0dRq\x0e(K\x03X\x01\x00\x00\x00|q\x0fNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x10"s;
  text += "b\x89"s + "B\x00\x18\x00\x00"s + std::string(kRecords * 3072, '7') + "q\x11tq\x12"s + "bu.";
  return bytes_of(text);
}

}  // namespace

std::vector<Bytes> seeds() { return {whole()}; }

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  const auto file = input_file("data_batch_1", {data, size});
  expect_answer([&] { lockstep::datasets::read_cifar_python({.files = {file}, .records = kRecords}, "labels"); });
  return 0;
}
