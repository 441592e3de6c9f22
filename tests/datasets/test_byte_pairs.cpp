// Byte pairs: the pieces into which text is cut, what is joined, and vocabularies that are damaged.
#include "data/datasets/byte_pairs.h"

#include <fstream>
#include <iterator>

#include "data/datasets/text_pieces.h"
#include "tests/data/support.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;
using Tokens = std::vector<std::int32_t>;

std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    all.emplace_back(text.substr(0, next_piece(text)));
    text.remove_prefix(all.back().size());
  }
  return all;
}

TEST(TextPieces, AreThoseOfGpt2) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces("Hello, it's 42 o'clock!"), (Pieces{"Hello", ",", " it", "'s", " 42", " o", "'", "clock", "!"}));
  EXPECT_EQ(pieces("we'll  you've\n\n x \t"), (Pieces{"we", "'ll", " ", " you", "'ve", "\n\n", " x", " \t"}));
  EXPECT_EQ(pieces("a\nb"), (Pieces{"a", "\n", "b"}));
  EXPECT_EQ(pieces(" 'tis"), (Pieces{" '", "tis"}));
  EXPECT_EQ(pieces("Grüße, 東京 ½ ²"), (Pieces{"Grüße", ",", " 東京", " ½", " ²"}));
  EXPECT_EQ(pieces("x\u00a0y\u3000\u3000z"), (Pieces{"x", "\u00a0", "y", "\u3000", "\u3000", "z"}));
  EXPECT_EQ(pieces("a\xff\xfe b"), (Pieces{"a", "\xff\xfe", " b"}));
  EXPECT_EQ(pieces("a\xe6\x9d"), (Pieces{"a", "\xe6\x9d"}));  // cut off within a character
}

TEST(TextPieces, KnowLettersAndNumbers) {
  for (const std::uint32_t c : {0x41u, 0x7Au, 0xAAu, 0xE9u, 0x3B1u, 0x5D0u, 0x4E00u, 0x1F88u, 0x20000u})
    EXPECT_TRUE(is_letter(c)) << c;
  for (const std::uint32_t c : {0x40u, 0x5Bu, 0x30u, 0xD7u, 0x300u, 0x1F600u, 0x110000u})
    EXPECT_FALSE(is_letter(c)) << c;
  for (const std::uint32_t c : {0x30u, 0x39u, 0xB2u, 0x660u, 0x2160u, 0x3007u}) EXPECT_TRUE(is_number(c)) << c;
  for (const std::uint32_t c : {0x2Fu, 0x3Au, 0x41u, 0x4E00u}) EXPECT_FALSE(is_number(c)) << c;
}

TEST(TextPieces, KnowTheLettersAndNumbersOfUnicode14) {
  const std::string python = find_python("unicodedata");
  const TempDir folder;
  const char* categories =
      "import unicodedata as u, sys\n"
      "if u.unidata_version != '14.0.0': sys.exit(77)\n"
      "open('categories', 'w').write(''.join(u.category(chr(c))[0] for c in range(0x110000)))\n";
  if (python.empty() || run_python(python, folder.path(), categories) != 0)
    GTEST_SKIP() << "there is no python3 here with the tables of Unicode 14";
  std::ifstream file(folder / "categories");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  ASSERT_EQ(all.size(), 0x110000U);
  for (std::uint32_t c = 0; c < all.size(); ++c)
    ASSERT_TRUE(is_letter(c) == (all[c] == 'L') && is_number(c) == (all[c] == 'N')) << c;
}

// The characters with which GPT-2's files write a byte.
std::string written(int byte) {
  static const std::vector<int> others = [] {
    std::vector<int> all;
    for (int b = 0; b < 256; ++b)
      if (b < 33 || (b > 126 && b < 161) || b == 173) all.push_back(b);
    return all;
  }();
  const auto found = std::find(others.begin(), others.end(), byte);
  const int c = found == others.end() ? byte : 256 + static_cast<int>(found - others.begin());
  if (c < 0x80) return std::string(1, static_cast<char>(c));
  return {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

// Bytes 0 to 255, then th, the, " the" (written "Ġthe"), aa, and the end.
std::string vocabulary(const std::string& end = "<|endoftext|>") {
  std::string json = "{";
  for (int byte = 0; byte < 256; ++byte) json += formatted("{}: {}, ", quoted(written(byte)), byte);
  return json + formatted("\"th\": 256, \"the\": 257, \"\u0120the\": 258, \"aa\": 259, \"{}\": 260}}", end);
}
constexpr const char* kMerges = "#version: 0.2\nt h\nth e\n\u0120 the\na a\n";

std::filesystem::path write(const TempDir& folder, const std::string& name, const std::string& text) {
  return folder.write(name, Bytes(text.begin(), text.end()));
}

TEST(BytePairs, JoinWhatComesFirstInTheList) {
  const TempDir folder;
  write(folder, "merges.txt", kMerges);
  const auto tokenizer = open_tokenizer(write(folder, "vocab.json", vocabulary()));
  EXPECT_EQ(tokenizer->size(), 261);
  EXPECT_EQ(tokenizer->end_of_text(), 260);
  EXPECT_NE(tokenizer->describe().find("261 byte pairs by 4 merges of "), std::string::npos);
  Tokens tokens;
  tokenizer->encode(
      "the then\n\xff"
      "aaaaa",
      tokens);
  EXPECT_EQ(tokens, (Tokens{257, 258, 'n', '\n', 255, 259, 259, 'a'}));
  std::string back;
  for (const std::int32_t token : tokens) back += tokenizer->text(token);
  EXPECT_EQ(back,
            "the then\n\xff"
            "aaaaa");
  EXPECT_EQ(tokenizer->bytes(258), 4);
  EXPECT_EQ(tokenizer->bytes(260), 1);
  tokens.clear();
  tokenizer->encode_documents("a<|endoftext|>th", tokens);
  EXPECT_EQ(tokens, (Tokens{'a', 260, 256}));
  expect_error([&] { tokenizer->text(261); }, {"261 is no token", "0 to 260"});
  write(folder, "merges.txt", "t h\nh e\nt h\n");  // GPT-2's encoder takes the last place of a merge
  const auto repeated = open_tokenizer(write(folder, "vocab.json", vocabulary().replace(1, 0, "\"he\": 261, ")));
  tokens.clear();
  repeated->encode("the", tokens);
  EXPECT_EQ(tokens, (Tokens{'t', 261}));
}

TEST(BytePairs, HuggingFacesFileGivesTheSame) {
  const TempDir folder;
  std::string bytes = vocabulary();
  bytes.replace(bytes.rfind(", \"<|"), std::string::npos, "}");
  for (const char* merges : {"[\"t h\", \"th e\", \"\u0120 the\", \"a a\"]",
                             "[[\"t\", \"h\"], [\"th\", \"e\"], [\"\u0120\", \"the\"], [\"a\", \"a\"]]"}) {
    write(
        folder, "tokenizer.json",
        formatted(
            R"({{"pre_tokenizer": {{"type": "ByteLevel"}}, "added_tokens": [{{"id": 260, "content": "</s>"}}], "model": {{"type": "BPE", "vocab": {}, "merges": {}}}}})",
            bytes, merges));
    const auto tokenizer = open_tokenizer(folder.path());
    Tokens tokens;
    tokenizer->encode("other the", tokens);
    EXPECT_EQ(tokens, (Tokens{'o', 257, 'r', 258}));
    EXPECT_EQ(tokenizer->end_of_text(), 260);
  }
}

TEST(BytePairs, DamagedVocabulariesAreErrors) {
  const TempDir folder;
  const auto refused = [&](const std::string& json, const std::string& merges, const std::vector<std::string>& parts) {
    const auto file = write(folder, "vocab.json", json);
    write(folder, "merges.txt", merges);
    expect_error([&] { open_tokenizer(file); }, parts);
  };
  const std::string whole = vocabulary();
  refused(whole.substr(0, 1000), kMerges, {"vocab.json", "no JSON at byte", "cut short"});
  refused("[1]", kMerges, {"no JSON object"});
  refused("{}", kMerges, {"no object of tokens"});
  refused(whole, "#version: 0.2\nt h\nth", {"merges.txt", "line 3 has no end", "cut short"});
  refused(whole, "t h e\n", {"line 1 is 't h e'"});
  refused(whole, "q u\n", {"merge 1 needs the token 'qu'"});
  refused(vocabulary("</s>").replace(1, 0, "\"/s>\": 261, "), "< /s>\n", {"merge 1 makes '</s>'"});
  refused(vocabulary("end"), kMerges, {"<|endoftext|>"});
  refused(R"({"a": 0, "b": 2, "<|endoftext|>": 3})", kMerges, {"there is no token 1 of 4"});
  refused(R"({"a": 0, "b": 0})", kMerges, {"the same number 0"});
  refused(R"({"a": -1})", kMerges, {"has the number -1"});
  refused(R"({"a": 99999999999})", kMerges, {"has the number 99999999999"});
  refused(R"({"a": 0, "<|endoftext|>": 1})", "", {"no token of the byte 0"});
  refused(R"({"model": {"type": "WordPiece", "merges": []}})", "", {"model.type is \"WordPiece\""});
  for (const char* model : {"[]", "3", "null", R"({"type": "BPE"})"})
    refused(formatted(R"({{"model": {}}})", model), "", {"model is no object with merges"});
  refused(whole, "#version: 0.2\n\xc4x h\n", {"merge 1 needs the token"});  // no UTF-8
  refused(
      R"({"model": {"type": "BPE", "merges": []}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]}})",
      "", {"pre_tokenizer is not GPT-2's"});
  std::filesystem::remove(folder / "merges.txt");
  expect_error([&] { open_tokenizer(write(folder, "vocab.json", whole)); }, {"there is no merges.txt"});
  const TempDir empty;
  expect_error([&] { open_tokenizer(folder / "none.json"); }, {"none.json", "no such file"});
}

}  // namespace
}  // namespace lockstep::datasets
