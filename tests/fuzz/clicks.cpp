// Tables of clicks: the first byte chooses Criteo's form, ratings or any table, the size of blocks, and whether the
// first field of ids is a bag.
#include <cmath>
#include <cstdlib>

#include "data/datasets/click_record.h"
#include "data/datasets/click_table.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  std::string criteo = std::string(1, '\0') + "1";
  for (int c = 0; c < 13; ++c) criteo += c % 3 == 0 ? "\t" : "\t-7";
  for (int c = 0; c < 26; ++c) criteo += c % 5 == 0 ? "\t" : "\t68fd1e64";
  criteo += "\n";
  return {bytes_of(criteo),
          bytes_of("\x01userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n\"7\",1029,3e0,0\n"),
          bytes_of("\x02x,site,n,y\n1.5,www.a.org,12,0\n-2e3,NA,9223372036854775808,1\n"),
          bytes_of("\x06x,site,n,y\r\n1,\"a\"\"b\",0,0.5\r\n"),
          bytes_of("\x0ax,site,n,y\n1,a|7||NA|b,3,1\n2,,4,0\n3,1|2|3|4,5,1\n"),
          bytes_of("\x03{\"ids\":{\"mapping\":\"hash\",\"fields\":[\"a\"],\"rows\":[9]},\"dense\":[],\"normalisation\":"
                   "{\"fields\":[]}}")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const int form = data[0] & 3;
  if (form == 3) {
    const std::string text(data + 1, data + size);
    fuzz::expect_answer([&] { datasets::ClickRecord::parse(text); });
    return 0;
  }
  const auto file = fuzz::input_file("a.txt", {data + 1, size - 1});
  datasets::ClickTableOptions options =
      form == 0   ? datasets::criteo_options()
      : form == 1 ? datasets::ratings_options(4)
                  : datasets::ClickTableOptions{.dense = {"x"}, .ids = {"site", "n"}, .label = "y"};
  options.files = {file.string()};
  if ((data[0] & 4) != 0) options.block = 7;
  if ((data[0] & 8) != 0) options.bags = {{.field = options.ids.front(), .places = 3}};
  fuzz::expect_answer([&] {
    const datasets::ClickTable set(options);
    std::vector<std::vector<std::byte>> memory;
    std::vector<std::byte*> out;
    for (const auto& field : set.fields()) out.push_back(memory.emplace_back(field.bytes()).data());
    for (std::int64_t i = 0; i < set.size(); ++i) {
      set.read(i, out);
      const float label = *reinterpret_cast<const float*>(out.back());
      if (!(label >= 0 && label <= 1)) std::abort();
    }
  });
  return 0;
}
