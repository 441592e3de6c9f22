// Text for language models: the source with a known entropy, byte pairs, and samples of files.
#include <cmath>
#include <map>
#include <regex>

#include "data/datasets/byte_pairs.h"
#include "data/datasets/corpus.h"
#include "data/datasets/text_dataset.h"
#include "data/datasets/text_pieces.h"
#include "data/datasets/text_sample.h"
#include "data/datasets/token_source.h"
#include "lockstep/core/random.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;
using Tokens = std::vector<std::int32_t>;

// Words of one to three tokens, and states of which one is left for good.
std::vector<TokenSource::State> small_states() {
  return {{{.tokens = {1}, .weight = 1, .next = 0}, {.tokens = {2, 3}, .weight = 2, .next = 1}, {.tokens = {2, 4, 4}, .weight = 1, .next = 0}},
          {{.tokens = {5}, .weight = 3, .next = 0}, {.tokens = {1, 1}, .weight = 1, .next = 1}}};
}

// The probabilities of all texts' first `count` tokens, by following every word.
void follow(const std::vector<TokenSource::State>& states, std::size_t state, const Tokens& text, double probability,
            std::size_t count, std::map<Tokens, double>& all) {
  if (text.size() >= count) {
    all[Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count))] += probability;
    return;
  }
  double weights = 0;
  for (const auto& word : states[state]) weights += word.weight;
  for (const auto& word : states[state]) {
    Tokens longer = text;
    longer.insert(longer.end(), word.tokens.begin(), word.tokens.end());
    follow(states, word.next, longer, probability * word.weight / weights, count, all);
  }
}

TEST(TokenSource, TheEntropyFromTheStartIsThatOfAllTexts) {
  const TokenSource source(small_states());
  for (const std::size_t count : {1u, 2u, 5u, 9u}) {
    std::map<Tokens, double> all;
    follow(small_states(), 0, {}, 1, count, all);
    double entropy = 0;
    for (const auto& [text, p] : all) entropy -= p * std::log(p);
    EXPECT_NEAR(source.entropy_from_start(static_cast<std::int64_t>(count)), entropy / static_cast<double>(count), 1e-12);
  }
}

TEST(TokenSource, TheRateIsTheEntropyOfALongText) {
  const TokenSource source(small_states());
  // Stationary: p_0 / 2 = 3/4 p_1, so 3/5 and 2/5 of the words; entropies and mean lengths by hand.
  const double h0 = 1.5 * std::log(2.0), h1 = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  EXPECT_NEAR(source.entropy_rate(), (0.6 * h0 + 0.4 * h1) / (0.6 * 2 + 0.4 * 1.25), 1e-12);
  EXPECT_NEAR(source.entropy_from_start(20000), source.entropy_rate(), 1e-4);
}

TEST(TokenSource, WritesWordsWithTheirProbabilities) {
  const TokenSource source(small_states());
  RandomStream random(7, 0);
  std::map<Tokens, int> counts;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    Tokens word;
    const std::size_t next = source.write(random, 0, word);
    EXPECT_EQ(next, word.size() == 2 ? 1u : 0u);
    ++counts[word];
  }
  EXPECT_NEAR(counts[{1}], kDraws * 0.25, 5 * 62);  // five standard deviations
  EXPECT_NEAR(counts[(Tokens{2, 3})], kDraws * 0.5, 5 * 71);
  EXPECT_NEAR(counts[(Tokens{2, 4, 4})], kDraws * 0.25, 5 * 62);
}

TEST(TokenSource, RefusesWhatIsNoSource) {
  expect_error([] { TokenSource({}); }, {"there are no states"});
  expect_error([] { TokenSource({{}}); }, {"state 0 has no words"});
  expect_error([] { TokenSource({{{.tokens = {1}, .weight = 1, .next = 0}, {.tokens = {1, 2}, .weight = 1, .next = 0}}}); },
               {"begins another one"});
  expect_error([] { TokenSource({{{.tokens = {1}, .weight = 0, .next = 0}}}); }, {"weight 0"});
  expect_error([] { TokenSource({{{.tokens = {1}, .weight = 1, .next = 1}}}); }, {"leads to state 1"});
}

Tokens field_of(const Dataset& set, std::int64_t index, std::size_t field) {
  const Bytes bytes = sample_of(set, index)[field];
  Tokens tokens(bytes.size() / sizeof(std::int32_t));
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

std::string text_of(const Tokens& tokens) {
  std::string text;
  for (const std::int32_t token : tokens) text += token == kEndOfText ? '\n' : static_cast<char>(token);
  return text;
}

// If this fails, every recorded loss on the corpus changes: that must be meant, never an accident.
TEST(Corpus, BytesNeverChange) {
  const CorpusDataset set({.context = 96, .size = 50, .seed = 3});
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < set.size(); ++i) hash = mix(hash, hash_name(text_of(field_of(set, i, 1))));
  EXPECT_EQ(hash, 0u);
  EXPECT_EQ(text_of(field_of(set, 0, 1)), "");
}

TEST(Corpus, SentencesFollowTheGrammar) {
  const CorpusDataset set({.context = 2000, .size = 4, .seed = 1});
  const std::string object = "(a|the|[1-9][0-9]) ([a-z]+ )?[a-z]+";
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const Tokens tokens = field_of(set, i, 0), targets = field_of(set, i, 1);
    EXPECT_EQ(tokens[0], kEndOfText);
    EXPECT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), targets.begin()));
    EXPECT_EQ(field_of(set, i, 2), (Tokens{2000}));
    const std::string text = text_of(targets);
    std::size_t sentences = 0;
    for (std::size_t begin = 0; begin < text.size(); ++sentences) {
      const std::size_t end = text.find('.', begin);
      if (end == text.npos) break;  // the sample is cut off
      const std::string sentence = text.substr(begin, end - begin + 1);
      std::smatch parts;
      ASSERT_TRUE(std::regex_match(sentence, parts, std::regex("(Ann|Bob|Eve|Tom|Ida|Max|Una|Leo) [a-z]+ " + object + "( and (she|he) [a-z]+ " + object + ")*, says (\\w+)\\."))) << sentence;
      EXPECT_EQ(parts[1], parts[parts.size() - 1]) << sentence;
      const bool she = std::string("AnnEveIdaUna").find(parts[1]) != std::string::npos;
      EXPECT_EQ(sentence.find(she ? " and he " : " and she "), std::string::npos) << sentence;
      EXPECT_FALSE(std::regex_search(sentence, std::regex("[0-9] ([a-z]+ )?[a-z]*[^s](,| and)"))) << sentence;
      begin = end + 2;
    }
    EXPECT_GT(sentences, 20u);
  }
}

// The source's own loss of its samples is the entropy that it states: a model that knows the words of each place and no
// more about them would have this loss. Found by counting the choices that a sample has made.
TEST(Corpus, TheEntropyIsKnown) {
  EXPECT_NEAR(in_bits(corpus_source().entropy_rate()), 0, 1e-6);
  EXPECT_NEAR(corpus_source().entropy_from_start(256), 0, 1e-7);
  EXPECT_NE(CorpusDataset({.context = 64, .size = 1}).describe().find("bits"), std::string::npos);
}

TEST(Corpus, ASampleDependsOnSeedAndIndexAlone) {
  const CorpusDataset few({.context = 64, .size = 3, .seed = 5}), many({.context = 64, .size = 30, .seed = 5});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(sample_of(few, i), sample_of(many, i));
  EXPECT_NE(sample_of(few, 0), sample_of(few, 1));
  EXPECT_NE(sample_of(few, 0), sample_of(CorpusDataset({.context = 64, .size = 3, .seed = 6}), 0));
  expect_error([] { CorpusDataset({.context = 0}); }, {"--context is 0"});
}

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
  EXPECT_EQ(pieces("we'll  you've\n\n x \t"), (Pieces{"we", "'ll", " ", " you", "'ve", "\n", "\n", " x", " \t"}));
  EXPECT_EQ(pieces("a\nb"), (Pieces{"a", "\n", "b"}));
  EXPECT_EQ(pieces(" 'tis"), (Pieces{" '", "tis"}));
  EXPECT_EQ(pieces("Grüße, 東京 ½ ²"), (Pieces{"Grüße", ",", " 東京", " ½", " ²"}));
  EXPECT_EQ(pieces("x\u00a0y\u3000\u3000z"), (Pieces{"x", "\u00a0", "y", "\u3000", "\u3000", "z"}));
  EXPECT_EQ(pieces("a\xff\xfe b"), (Pieces{"a", "\xff\xfe", " b"}));
  EXPECT_EQ(pieces("a\xe6\x9d"), (Pieces{"a", "\xe6\x9d"}));  // cut off within a character
}

TEST(TextPieces, KnowLettersAndNumbers) {
  for (const std::uint32_t c : {0x41u, 0x7Au, 0xAAu, 0xE9u, 0x3B1u, 0x5D0u, 0x4E00u, 0x1F88u, 0x20000u}) EXPECT_TRUE(is_letter(c)) << c;
  for (const std::uint32_t c : {0x40u, 0x5Bu, 0x30u, 0xD7u, 0x300u, 0x1F600u, 0x110000u}) EXPECT_FALSE(is_letter(c)) << c;
  for (const std::uint32_t c : {0x30u, 0x39u, 0xB2u, 0x660u, 0x2160u, 0x3007u}) EXPECT_TRUE(is_number(c)) << c;
  for (const std::uint32_t c : {0x2Fu, 0x3Au, 0x41u, 0x4E00u}) EXPECT_FALSE(is_number(c)) << c;
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
  Tokens tokens;
  tokenizer->encode("the then\n\xff" "aaaaa", tokens);
  EXPECT_EQ(tokens, (Tokens{257, 258, 'n', '\n', 255, 259, 259, 'a'}));
  std::string back;
  for (const std::int32_t token : tokens) back += tokenizer->text(token);
  EXPECT_EQ(back, "the then\n\xff" "aaaaa");
  EXPECT_EQ(tokenizer->bytes(258), 4);
  EXPECT_EQ(tokenizer->bytes(260), 1);
  tokens.clear();
  tokenizer->encode_documents("a<|endoftext|>th", tokens);
  EXPECT_EQ(tokens, (Tokens{'a', 260, 256}));
  expect_error([&] { tokenizer->text(261); }, {"261 is no token", "0 to 260"});
}

TEST(BytePairs, HuggingFacesFileGivesTheSame) {
  const TempDir folder;
  std::string bytes = vocabulary();
  bytes.replace(bytes.rfind(", \"<|"), std::string::npos, "}");
  for (const char* merges : {"[\"t h\", \"th e\", \"\u0120 the\", \"a a\"]", "[[\"t\", \"h\"], [\"th\", \"e\"], [\"\u0120\", \"the\"], [\"a\", \"a\"]]"}) {
    write(folder, "tokenizer.json",
          formatted(R"({{"pre_tokenizer": {{"type": "ByteLevel"}}, "added_tokens": [{{"id": 260, "content": "</s>"}}], "model": {{"type": "BPE", "vocab": {}, "merges": {}}}}})", bytes, merges));
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
  refused(vocabulary("end"), kMerges, {"<|endoftext|>"});
  refused(R"({"a": 0, "b": 2, "<|endoftext|>": 3})", kMerges, {"there is no token 1 of 4"});
  refused(R"({"a": 0, "b": 0})", kMerges, {"the same number 0"});
  refused(R"({"a": -1})", kMerges, {"has the number -1"});
  refused(R"({"a": 99999999999})", kMerges, {"has the number 99999999999"});
  refused(R"({"a": 0, "<|endoftext|>": 1})", "", {"no token of the byte 0"});
  refused(R"({"model": {"type": "WordPiece"}})", "", {"model.type is \"WordPiece\""});
  refused(R"({"model": {"type": "BPE", "merges": []}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]}})", "", {"pre_tokenizer is not GPT-2's"});
  std::filesystem::remove(folder / "merges.txt");
  expect_error([&] { open_tokenizer(write(folder, "vocab.json", whole)); }, {"there is no merges.txt"});
  const TempDir empty;
  expect_error([&] { open_tokenizer(folder / "none.json"); }, {"none.json", "no such file"});
}

TEST(Text, SamplesArePackedWithoutGaps) {
  const TempDir folder;
  write(folder, "a.txt", "hello<|endoftext|>you");
  write(folder, "b.txt", "12345");
  TextOptions o{.context = 4, .text = "a.txt,b*.txt", .eval_part = 0.34};
  const std::vector<DatasetEntry> entries = text_entries(o);
  RunData data = open_data(entries, {.name = "text", .dir = folder.path()});
  constexpr std::int32_t E = kEndOfText;
  EXPECT_EQ(field_of(*data.train, 0, 0), (Tokens{E, 'h', 'e', 'l'}));
  EXPECT_EQ(field_of(*data.train, 0, 1), (Tokens{'h', 'e', 'l', 'l'}));
  EXPECT_EQ(field_of(*data.train, 1, 0), (Tokens{'l', 'o', E, 'y'}));
  EXPECT_EQ(data.train->size(), 2);  // 17 tokens: 4 samples of 4, of which the last third is held back
  EXPECT_EQ(data.eval->size(), 1);
  EXPECT_EQ(field_of(*data.eval, 0, 0), (Tokens{'o', 'u', E, '1'}));
  EXPECT_NE(data.eval->locate(0).find("tokens 8 and on"), std::string::npos);
}

TEST(Text, WrongOptionsAreErrors) {
  const TempDir folder;
  write(folder, "short.txt", "ab");
  write(folder, "empty.txt", "");
  TextOptions o{.context = 4};
  const std::vector<DatasetEntry> entries = text_entries(o);
  const DatasetOptions wanted{.name = "text", .dir = folder.path()};
  expect_error([&] { open_data(entries, wanted); }, {"--text is missing"});
  o.text = "short.txt";
  expect_error([&] { open_data(entries, wanted); }, {"--text has 4 tokens", "more than --context 4"});
  o.context = 2;
  expect_error([&] { open_data(entries, wanted); }, {"--eval-part is 0.1 of 1 samples"});
  o.text = "empty.txt";
  expect_error([&] { open_data(entries, wanted); }, {"there is no text"});
  o.text = "none*.txt";
  expect_error([&] { open_data(entries, wanted); }, {"none*.txt"});
  expect_error([&] { open_data(entries, {.name = "corpus"}); }, {"--text, --eval-text and --vocabulary are for --dataset text"});
}

}  // namespace
}  // namespace lockstep::datasets
