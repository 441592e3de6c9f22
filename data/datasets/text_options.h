// The options of text for language models. They belong to a program (its own options, which checkpoints contain), which
// outlives the entries of a catalogue that read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

struct TextOptions {
  std::int64_t context = 256;       // tokens of a sample
  std::string text{}, eval_text{};  // files, paths with * and ?, separated by commas
  double eval_part = 0.1;           // of the tokens of `text`, at its end, for evaluation, where eval_text is empty
  std::string vocabulary{};         // of byte pairs: tokenizer.json, vocab.json, or a folder with them; empty: bytes
  std::int64_t samples = 4096;      // training samples of an epoch of the built-in corpus
};

// The entries "corpus" (data/datasets/corpus.h) and "text" (data/datasets/text_dataset.h). Samples have the fields
// "tokens" and "targets", I32 (context), where target i is token i + 1, and "bytes", I32 (), the number of bytes that
// the targets stand for; the end token counts as one. `options` must outlive the entries.
std::vector<data::DatasetEntry> text_entries(const TextOptions& options);

}  // namespace lockstep::datasets
