// Text of users' files as samples for language models: documents, each behind an end token, are one sequence of tokens,
// which is cut into samples of equal length without gaps (packed sequences).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/text_options.h"
#include "data/datasets/tokenizer.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// The tokens of files: a file is a document, or several with "<|endoftext|>" between them. Two bytes per token in
// memory for up to 65,536 different tokens, else four. Immutable; any thread.
class TextTokens {
 public:
  // Reads the files (names that end in .gz are decompressed). Throws Error for a file that cannot be read, and for
  // files without text.
  TextTokens(const std::vector<std::filesystem::path>& files, std::unique_ptr<Tokenizer> tokenizer);
  std::int64_t size() const { return size_; }
  void copy(std::int64_t begin, std::span<std::int32_t> out) const;
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const std::string& files() const { return files_; }  // for messages

 private:
  void append(const std::vector<std::int32_t>& tokens);

  std::unique_ptr<Tokenizer> tokenizer_;
  std::string files_;
  std::vector<std::uint16_t> narrow_;
  std::vector<std::int32_t> wide_;
  std::int64_t size_ = 0;
};

// Samples [first, first + size) of tokens: sample i has tokens from i * context on. The fields are those of
// text_fields().
class TextDataset final : public data::Dataset {
 public:
  struct Part {
    std::int64_t first, size;
  };
  TextDataset(std::shared_ptr<const TextTokens> tokens, std::int64_t context, Part part);
  // The number of samples of this length.
  static std::int64_t samples(const TextTokens& tokens, std::int64_t context) { return (tokens.size() - 1) / context; }
  std::int64_t size() const override { return part_.size; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  std::shared_ptr<const TextTokens> tokens_;
  std::int64_t context_;
  Part part_;
  std::vector<data::Field> fields_;
};

data::DatasetEntry text_entry(const TextOptions& options);

}  // namespace lockstep::datasets
