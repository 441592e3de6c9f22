// A vocabulary of byte pairs in tokenizer.json, and text that it cuts.
#include <string>

#include "data/datasets/tokenizer.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  std::string tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    static int other;
    if (byte == 0) other = 256;
    const int c = visible ? byte : other++;
    std::string written(1, static_cast<char>(c));
    if (c >= 0x80) written = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    if (c == '"' || c == '\\') written.insert(0, "\\");
    tokens += "\"" + written + "\":" + std::to_string(byte) + ",";
  }
  return {
      bytes_of("{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"added_tokens\":[{\"id\":258,\"content\":\"</s>\"}],"
               "\"model\":{\"type\":\"BPE\",\"merges\":[\"t h\",[\"th\",\"e\"]],\"vocab\":{" +
               tokens + "\"th\":256,\"the\":257}}}")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  const auto file = input_file("tokenizer.json", {data, size});
  expect_answer([&] {
    std::vector<std::int32_t> tokens;
    lockstep::datasets::open_tokenizer(file)->encode_documents(text_of(data, size), tokens);
  });
  return 0;
}
