// The options of text for language models (text_catalogue() in data/datasets/catalogue.h). They are a program's own
// options, which checkpoints contain.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::datasets {

// Of the options for data sets without fields (DatasetEntry::ignores).
inline constexpr std::array<std::string_view, 2> kTextIgnores{"augment", "resize"};

struct TextOptions {
  std::int64_t context = 256;       // tokens of a sample
  std::string text{}, eval_text{};  // files, paths with * and ?, separated by commas
  double eval_part = 0.1;           // of the tokens of `text`, at its end, for evaluation, where eval_text is empty
  std::string vocabulary{};         // of byte pairs: tokenizer.json, vocab.json, or a folder with them; empty: bytes
  std::int64_t samples = 4096;      // training samples of an epoch of the built-in corpus
};

}  // namespace lockstep::datasets
