// Text as numbers: each token stands for a string of bytes, and one for the end of a document. Immutable; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t size() const = 0;         // tokens are 0 to size() - 1
  virtual std::int32_t end_of_text() const = 0;  // between documents
  // Appends the tokens of `text`, in which nothing stands for the end of a document.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  // Returns the bytes of a token, empty for the end of a document; throws Error for a number that is no token.
  virtual std::string_view text(std::int32_t token) const = 0;
  virtual std::string describe() const = 0;  // a few words for a log
  virtual std::string identity() const = 0;  // equal for tokenizers that give every text the same tokens

  // The number of bytes that a token stands for; the end of a document counts as one.
  std::int64_t bytes(std::int32_t token) const;
  // Appends the tokens of text in which kEndMark stands between documents.
  void encode_documents(std::string_view text, std::vector<std::int32_t>& tokens) const;
  static constexpr std::string_view kEndMark = "<|endoftext|>";
};

// Returns the tokens of bytes for an empty path, else those of the vocabulary of byte pairs in this file or folder
// (data/datasets/byte_pairs.h). Throws Error with file and offset if it is not as expected.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& vocabulary);

// The record that a checkpoint has of the tokenizer of its text (data::PredictionFacts::record): a JSON object.
std::string tokenizer_record(const Tokenizer& tokenizer);
// Throws Error at `site` if `record` is that of another tokenizer; a record without one says nothing.
void check_tokenizer(std::string_view site, const Tokenizer& tokenizer, std::string_view record);

}  // namespace lockstep::datasets
