// Built-in text for language models, of which the entropy is known: English sentences of a stated Markov chain. The
// subject's name decides on the pronoun and on the name at the end of a sentence, and a number on the plural, so a
// model that comes near the entropy must look back over many bytes.
//
//   document:   sentence, then " " and a further sentence with probability 7/8, or the end token
//   sentence:   NAME " " clause, then with probability 1/3 " and " PRONOUN " " clause (any number of times), then
//               ", says " NAME "."
//   clause:     VERB " " object
//   object:     "a " or "the " (1/3 each) and a noun, or a number from 10 to 99, " " and a plural (1/3)
//   noun:       after an adjective with probability 1/2
//
// Words of a kind are equally likely: 8 names, 16 verbs, 16 adjectives, 32 nouns. Tokens are bytes, and kEndOfText.
#pragma once

#include <memory>

#include "data/datasets/text_options.h"
#include "data/datasets/token_source.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// The source of the sentences; made at the first call.
const TokenSource& corpus_source();

struct CorpusOptions {
  std::int64_t context = 256;  // tokens of a sample
  std::int64_t size = 4096;    // samples
  std::uint64_t seed = 0;
};

// Samples are texts from their starts, cut off at the context's length; each depends on (seed, index) alone. Fields as
// those of TextDataset; the first token of a sample is the end token. Throws Error for options out of range.
class CorpusDataset final : public data::Dataset {
 public:
  explicit CorpusDataset(const CorpusOptions& options);
  std::int64_t size() const override { return options_.size; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  CorpusOptions options_;
  std::vector<data::Field> fields_;
};

data::DatasetEntry corpus_entry(const TextOptions& options);

}  // namespace lockstep::datasets
