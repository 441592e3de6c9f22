// A vocabulary of byte pairs in tokenizer.json, or the merges of one beside a vocab.json that is whole (inputs that
// begin with '#'), and text that it cuts: whatever the text is, its tokens are its bytes again.
#include <stdexcept>
#include <string>

#include "data/datasets/tokenizer.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

// Bytes 0 to 255 as GPT-2 writes them, "th" and "the", as members of a JSON object.
std::string members() {
  std::string text;
  int other = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool visible = (byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173);
    const int c = visible ? byte : other++;
    std::string written(1, static_cast<char>(c));
    if (c >= 0x80) written = {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
    if (c == '"' || c == '\\') written.insert(0, "\\");
    text += "\"" + written + "\":" + std::to_string(byte) + ",";
  }
  return text + "\"th\":256,\"the\":257";
}

}  // namespace

std::vector<Bytes> seeds() {
  return {bytes_of("{\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"added_tokens\":[{\"id\":258,\"content\":\"</s>\"}],"
                   "\"model\":{\"type\":\"BPE\",\"merges\":[\"t h\",[\"th\",\"e\"]],\"vocab\":{" +
                   members() + "}}}"),
          bytes_of("#version: 0.2\nt h\nth e\n"), bytes_of("#version: 0.2\r\nt h\r\n\r\nth e\r\n")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  static const auto whole = fuzz::input_file("vocab.json", fuzz::bytes_of("{" + fuzz::members() + ",\"</s>\":258}"));
  const bool is_merges = size > 0 && data[0] == '#';
  const auto file = fuzz::input_file(is_merges ? "merges.txt" : "tokenizer.json", {data, size});
  fuzz::expect_answer([&] {
    const auto tokenizer = datasets::open_tokenizer(is_merges ? whole : file);
    const std::string_view text = fuzz::text_of(data, size);
    std::vector<std::int32_t> tokens;
    tokenizer->encode(text, tokens);
    std::string back;
    for (const std::int32_t token : tokens) back += tokenizer->text(token);
    if (back != text) throw std::logic_error("the tokens of a text are other bytes than the text");
  });
  return 0;
}
