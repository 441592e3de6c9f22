// CSV tables: the first byte chooses header, threads, replacement of missing values and the size of blocks.
#include "data/datasets/csv.h"

#include <cstdlib>

#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of("\x01x,\"a, b\",kind\n1,2.5,cat\r\n-3e2,\"4\",\"big \"\"dog\"\"\"\n\n,nan,cat\n"),
          bytes_of("\x02"
                   "1,2,3\n4,5,6\n"),
          bytes_of("\x0dx,y,\"z\nz\"\n1,NA,\"a\nb\"\n"), bytes_of("\x0f\xEF\xBB\xBFx,y,z\n1,2,\"")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const auto file = fuzz::input_file("a.csv", {data + 1, size - 1});
  datasets::CsvOptions options{.files = {file.string()}, .inputs = {"0", "1"}, .label = "2"};
  options.header = data[0] % 2 == 1;
  if ((data[0] & 2) != 0) options.missing = 0;
  options.threads = (data[0] & 4) != 0 ? 3 : 1;
  if ((data[0] & 8) != 0) options.block = 7;
  fuzz::expect_answer([&] {
    const datasets::CsvDataset set(options);
    float input[2];
    std::int32_t label = 0;
    std::byte* out[] = {reinterpret_cast<std::byte*>(input), reinterpret_cast<std::byte*>(&label)};
    for (std::int64_t i = 0; i < set.size(); ++i) {
      set.read(i, out);
      if (label < 0 || label >= set.classes()) std::abort();
    }
  });
  return 0;
}
