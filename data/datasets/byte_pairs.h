// Byte pair encoding as GPT-2 has it (Sennrich, Haddow and Birch, "Neural machine translation of rare words with
// subword units", 2016; Radford et al., "Language models are unsupervised multitask learners", 2019): text is cut into
// pieces such as words with the space before them (data/datasets/text_pieces.h), and in each piece, which begins as
// bytes, the pair of neighbours that comes first in the list of merges is joined until no pair is in the list.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/datasets/tokenizer.h"

namespace lockstep::datasets {

// The contents of a vocabulary's files. Tokens and merges are bytes.
struct BytePairVocabulary {
  std::string source{};  // the files' names, for messages
  std::vector<std::string> tokens{};
  std::int32_t end_of_text = 0;
  std::vector<std::pair<std::string, std::string>> merges{};  // the first ones first
};

// Reads tokenizer.json (Hugging Face), or GPT-2's vocab.json (encoder.json) with merges.txt (vocab.bpe) beside it; of a
// folder, the files with these names. Throws Error with file and position: for a file that is cut short or no JSON, for
// tokens that are missing, double or not numbered from 0 without holes, for a kind of tokenizer other than byte-level
// byte pairs, and where there is no token <|endoftext|> or </s>.
BytePairVocabulary read_byte_pairs(const std::filesystem::path& path);

class BytePairs final : public Tokenizer {
 public:
  // Throws Error where a byte is no token, or a merge or its result is none.
  explicit BytePairs(BytePairVocabulary vocabulary);
  std::int64_t size() const override { return static_cast<std::int64_t>(vocabulary_.tokens.size()); }
  std::int32_t end_of_text() const override { return vocabulary_.end_of_text; }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override;
  std::string_view text(std::int32_t token) const override;
  std::string describe() const override;
  std::string identity() const override;

 private:
  struct Merge {
    std::int64_t rank;
    std::int32_t result;
  };
  static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  const Merge* merge_of(std::int32_t left, std::int32_t right) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& tokens) const;

  BytePairVocabulary vocabulary_;
  std::vector<std::int32_t> of_byte_;
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace lockstep::datasets
