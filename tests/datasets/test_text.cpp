// Text for language models: the source with a known entropy, and samples of files.
#include <cmath>
#include <map>
#include <regex>

#include "data/datasets/catalogue.h"
#include "data/datasets/corpus.h"
#include "data/datasets/text_dataset.h"
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
  return {{{.tokens = {1}, .weight = 1, .next = 0},
           {.tokens = {2, 3}, .weight = 2, .next = 1},
           {.tokens = {2, 4, 4}, .weight = 1, .next = 0}},
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
    EXPECT_NEAR(source.entropy_from_start(static_cast<std::int64_t>(count)), entropy / static_cast<double>(count),
                1e-12);
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
  expect_error([] { TokenSource(std::vector<TokenSource::State>()); }, {"there are no states"});
  expect_error([] { TokenSource(std::vector<TokenSource::State>(1)); }, {"state 0 has no words"});
  expect_error(
      [] {
        TokenSource({{{.tokens = {1}, .weight = 1, .next = 0}, {.tokens = {1, 2}, .weight = 1, .next = 0}}});
      },
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
  EXPECT_EQ(hash, 16747115543398680840u);
  EXPECT_EQ(text_of(field_of(set, 0, 1)),
            "Una sees the oven, says Una. Max needs a net, says Max. Bob loses a small lamp, says Bob. Tom li");
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
      ASSERT_TRUE(std::regex_match(sentence, parts,
                                   std::regex("(Ann|Bob|Eve|Tom|Ida|Max|Una|Leo) [a-z]+ " + object +
                                              "( and (she|he) [a-z]+ " + object + ")*, says (\\w+)\\.")))
          << sentence;
      EXPECT_EQ(parts[1], parts[parts.size() - 1]) << sentence;
      const bool she = std::string("AnnEveIdaUna").find(parts[1]) != std::string::npos;
      EXPECT_EQ(sentence.find(she ? " and he " : " and she "), std::string::npos) << sentence;
      EXPECT_FALSE(std::regex_search(sentence, std::regex("[0-9] ([a-z]+ )?[a-z]*[^s](,| and)"))) << sentence;
      begin = end + 2;
    }
    EXPECT_GT(sentences, 20u);
  }
}

// By hand, from the grammar: a sentence has one name, a clause and in the mean half a further one, ...
TEST(Corpus, TheEntropyIsKnown) {
  const auto choice = [](double p) { return -p * std::log2(p) - (1 - p) * std::log2(1 - p); };
  const double verb = 4, object = std::log2(3) + std::log2(90) / 3, noun = 1 + 0.5 * 4 + 5;
  const double bits = 3 + 1.5 * (verb + object + noun + choice(1.0 / 3)) + choice(1.0 / 8);
  const double clause = 6 + 3 + 0.5 * 5.125 + 4.0625 + 1.0 / 3;  // mean lengths of verb, object, adjective, noun, s
  const double bytes = 4 + 1.5 * clause + 0.5 * 8.5 + 11 + 1;
  EXPECT_NEAR(in_bits(corpus_source().entropy_rate()), bits / bytes, 1e-9);
  EXPECT_NEAR(corpus_source().entropy_from_start(100000), corpus_source().entropy_rate(), 1e-4);
  EXPECT_NE(CorpusDataset({.context = 64, .size = 1}).describe().find("bits"), std::string::npos);
}

TEST(Corpus, ASampleDependsOnSeedAndIndexAlone) {
  const CorpusDataset few({.context = 64, .size = 3, .seed = 5}), many({.context = 64, .size = 30, .seed = 5});
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_EQ(sample_of(few, i), sample_of(many, i));
  EXPECT_NE(sample_of(few, 0), sample_of(few, 1));
  EXPECT_NE(sample_of(few, 0), sample_of(CorpusDataset({.context = 64, .size = 3, .seed = 6}), 0));
  expect_error([] { CorpusDataset({.context = 0}); }, {"--context is 0"});
}

std::filesystem::path write(const TempDir& folder, const std::string& name, const std::string& text) {
  return folder.write(name, Bytes(text.begin(), text.end()));
}

TEST(Text, SamplesArePackedWithoutGaps) {
  const TempDir folder;
  write(folder, "a.txt", "hello<|endoftext|>you");
  write(folder, "b.txt", "12345");
  TextOptions o{.context = 4, .text = "a.txt,b*.txt", .eval_part = 0.34};
  const std::vector<DatasetEntry> entries = text_catalogue(o);
  RunData data = open_data(entries, {.name = "text", .dir = folder.path()});
  constexpr std::int32_t E = kEndOfText;
  EXPECT_EQ(field_of(*data.train, 0, 0), (Tokens{E, 'h', 'e', 'l'}));
  EXPECT_EQ(field_of(*data.train, 0, 1), (Tokens{'h', 'e', 'l', 'l'}));
  EXPECT_EQ(field_of(*data.train, 1, 0), (Tokens{'l', 'o', E, 'y'}));
  EXPECT_EQ(data.train->size(), 3);  // 17 tokens: 4 samples of 4, of which the last one is held back
  EXPECT_EQ(data.eval->size(), 1);
  EXPECT_EQ(field_of(*data.eval, 0, 0), (Tokens{'2', '3', '4', '5'}));
  EXPECT_NE(data.eval->locate(0).find("tokens 12 and on"), std::string::npos);
}

TEST(Text, WrongOptionsAreErrors) {
  const TempDir folder;
  write(folder, "short.txt", "ab");
  write(folder, "empty.txt", "");
  TextOptions o{.context = 4};
  const std::vector<DatasetEntry> entries = text_catalogue(o);
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
  expect_error([&] { open_data(entries, {.name = "corpus"}); },
               {"--text, --eval-text and --vocabulary are for --dataset text"});
}

}  // namespace
}  // namespace lockstep::datasets
