#include "data/datasets/corpus.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/datasets/text_sample.h"
#include "data/datasets/tokenizer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::datasets {
namespace {

struct Name {
  std::string_view name, pronoun;
};
constexpr std::array<Name, 8> kNames{{{"Ann", "she"},
                                      {"Bob", "he"},
                                      {"Eve", "she"},
                                      {"Tom", "he"},
                                      {"Ida", "she"},
                                      {"Max", "he"},
                                      {"Una", "she"},
                                      {"Leo", "he"}}};
constexpr std::array<std::string_view, 16> kVerbs{"sees",  "likes",  "buys",  "sells", "finds", "hides",
                                                  "draws", "paints", "wants", "takes", "keeps", "loses",
                                                  "moves", "lifts",  "needs", "counts"};
constexpr std::array<std::string_view, 16> kAdjectives{"red",   "blue",  "green", "old", "new",  "big",
                                                       "small", "round", "clean", "wet", "warm", "cheap",
                                                       "heavy", "light", "soft",  "loud"};
constexpr std::array<std::string_view, 32> kNouns{
    "apple", "ball", "chair", "door", "engine", "flag",  "goat", "hat",  "island", "jar",  "kite",
    "lamp",  "map",  "net",   "oven", "pen",    "quilt", "ring", "shoe", "table",  "urn",  "van",
    "wagon", "yard", "zebra", "bell", "cup",    "drum",  "egg",  "fork", "gate",   "house"};
constexpr double kMoreClauses = 1.0 / 3, kAdjective = 0.5, kMoreSentences = 7.0 / 8;
constexpr int kFirstNumber = 10, kLastNumber = 99;
constexpr std::int64_t kEvalSamples = 512;  // samples of an evaluation that no option limits

// The states: where a text starts, after a sentence, and for each name those that remember it.
enum Of : std::size_t { kVerb, kObject, kSingular, kSingularNoun, kPlural, kPluralNoun, kAfterClause, kStates };
constexpr std::size_t kStart = 0, kAfterSentence = 1;
constexpr std::size_t state_of(std::size_t name, Of what) { return 2 + name * kStates + what; }

void add(TokenSource::State& state, std::string_view text, double weight, std::size_t next) {
  TokenSource::Word word{.tokens = {}, .weight = weight, .next = next};
  for (const char c : text) word.tokens.push_back(static_cast<unsigned char>(c));
  state.push_back(std::move(word));
}

void add_nouns(TokenSource::State& state, std::string_view ending, double weight, std::size_t next) {
  for (const std::string_view noun : kNouns) add(state, formatted("{}{}", noun, ending), weight / kNouns.size(), next);
}

void add_name(std::vector<TokenSource::State>& states, std::size_t i) {
  const auto& [name, pronoun] = kNames[i];
  add(states[kStart], formatted("{} ", name), 1, state_of(i, kVerb));
  for (const std::string_view verb : kVerbs)
    add(states[state_of(i, kVerb)], formatted("{} ", verb), 1, state_of(i, kObject));
  TokenSource::State& object = states[state_of(i, kObject)];
  add(object, "a ", 1, state_of(i, kSingular));
  add(object, "the ", 1, state_of(i, kSingular));
  for (int number = kFirstNumber; number <= kLastNumber; ++number)
    add(object, formatted("{} ", number), 1.0 / (kLastNumber - kFirstNumber + 1), state_of(i, kPlural));
  for (const auto& [before, after, ending] :
       {std::tuple{kSingular, kSingularNoun, ""}, std::tuple{kPlural, kPluralNoun, "s"}}) {
    TokenSource::State& state = states[state_of(i, before)];
    for (const std::string_view adjective : kAdjectives)
      add(state, formatted("{} ", adjective), kAdjective / kAdjectives.size(), state_of(i, after));
    add_nouns(state, ending, 1 - kAdjective, state_of(i, kAfterClause));
    add_nouns(states[state_of(i, after)], ending, 1, state_of(i, kAfterClause));
  }
  TokenSource::State& end = states[state_of(i, kAfterClause)];
  add(end, formatted(" and {} ", pronoun), kMoreClauses, state_of(i, kVerb));
  add(end, formatted(", says {}.", name), 1 - kMoreClauses, kAfterSentence);
}

TokenSource make_source() {
  std::vector<TokenSource::State> states(state_of(kNames.size(), kVerb));
  for (std::size_t i = 0; i < kNames.size(); ++i) add_name(states, i);
  add(states[kAfterSentence], " ", kMoreSentences, kStart);
  states[kAfterSentence].push_back({.tokens = {kEndOfText}, .weight = 1 - kMoreSentences, .next = kStart});
  return TokenSource(std::move(states));
}

}  // namespace

const TokenSource& corpus_source() {
  static const TokenSource source = make_source();
  return source;
}

CorpusDataset::CorpusDataset(const CorpusOptions& options)
    : options_(options), fields_(text_fields("corpus", options.context)) {
  check(options.size >= 1 && options.size <= std::int64_t{1} << 40, "corpus", "{} samples, expected 1 to 2^40",
        options.size);
}

std::string CorpusDataset::describe() const {
  return formatted(
      "corpus: {} samples of {} bytes; entropy {:.5f} nats a byte ({:.5f} bits; of the source without "
      "end: {:.5f} bits)",
      size(), options_.context, corpus_source().entropy_from_start(options_.context),
      in_bits(corpus_source().entropy_from_start(options_.context)), in_bits(corpus_source().entropy_rate()));
}

void CorpusDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  RandomStream random(mix(options_.seed, hash_name("corpus")), static_cast<std::uint64_t>(index));
  std::vector<std::int32_t> tokens{kEndOfText};
  const auto wanted = static_cast<std::size_t>(options_.context) + 1;
  for (std::size_t state = kStart; tokens.size() < wanted;) state = corpus_source().write(random, state, tokens);
  write_text_sample(std::span(tokens).first(wanted), options_.context, out);
}

data::DatasetEntry corpus_entry(const TextOptions& options) {
  const auto open = [&options](const data::DatasetOptions& wanted, data::Split split) {
    CorpusOptions chosen{.context = options.context, .size = options.samples};
    if (split == data::Split::Eval && wanted.limit_eval == 0) chosen.size = std::min(options.samples, kEvalSamples);
    chosen.seed = mix(wanted.seed, split == data::Split::Train ? 0 : 1);
    return std::make_unique<CorpusDataset>(chosen);
  };
  const auto check_options = [&options](const data::DatasetOptions&) {
    check(options.text.empty() && options.eval_text.empty() && options.vocabulary.empty(), "options",
          "--text, --eval-text and --vocabulary are for --dataset text, and the data set is corpus");
  };
  const auto prepare = [&options](data::RunData& data, const data::DatasetOptions&, const comm::Communicator*) {
    nlohmann::json record = nlohmann::json::parse(tokenizer_record(*open_tokenizer({})));
    record["options"] = {{"context", options.context}, {"corpus-samples", options.samples}};
    data.prediction.record = record.dump();
  };
  return {.name = "corpus",
          .description = "built in: sentences of a Markov chain whose entropy is known, as bytes",
          .ignores = {kTextIgnores.begin(), kTextIgnores.end()},
          .open = open,
          .prepare = prepare,
          .check_options = check_options};
}

}  // namespace lockstep::datasets
