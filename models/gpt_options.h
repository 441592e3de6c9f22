// The options of train_gpt that say what model and text are; checkpoints contain them, and `lockstep generate` reads
// them there.
#pragma once

#include <string>

#include "data/datasets/text_options.h"
#include "lockstep/train/options/option_value.h"
#include "models/zoo/gpt.h"

template <>
struct lockstep::train::Choices<lockstep::models::GptPositions> {
  using Positions = lockstep::models::GptPositions;
  static constexpr std::array kAll{NamedValue{Positions::Learned, "learned"}, NamedValue{Positions::Rotary, "rotary"},
                                   NamedValue{Positions::Alibi, "alibi"}};
};

template <>
struct lockstep::train::Choices<lockstep::models::GptNorm> {
  using Norm = lockstep::models::GptNorm;
  static constexpr std::array kAll{NamedValue{Norm::Layer, "layer"}, NamedValue{Norm::Rms, "rms"}};
};

template <>
struct lockstep::train::Choices<lockstep::models::GptMlp> {
  using Mlp = lockstep::models::GptMlp;
  static constexpr std::array kAll{NamedValue{Mlp::Gelu, "gelu"}, NamedValue{Mlp::SwiGlu, "swiglu"}};
};

namespace lockstep::models {

struct GptOptions {
  GptConfig model{};
  datasets::TextOptions text{};
  bool no_bias = false, untied = false;

  GptConfig config(std::int64_t vocabulary) const {
    GptConfig c = model;
    c.vocabulary = vocabulary;
    c.context = text.context;
    c.bias = !no_bias;
    c.tied = !untied;
    return c;
  }
};

// Calls add(name, value, text) for each option, and add(name, value, text, argument) for paths, for which `argument`
// stands in --help; `value` is a reference to a member of `o`.
template <class Add>
void for_each_option(GptOptions& o, const Add& add) {
  add("layers", o.model.layers, "blocks of the model");
  add("heads", o.model.heads, "heads of attention; they divide --width");
  add("width", o.model.width, "features of a position");
  add("key-heads", o.model.key_heads, "heads of keys and values, each for a group of heads; 0: one per head");
  add("hidden", o.model.hidden, "features inside an MLP; 0: 4 times --width, with swiglu 8/3 times");
  add("dropout", o.model.dropout, "probability of dropout of embeddings, attention weights and results of layers");
  add("positions", o.model.positions, "learned, rotary, or alibi");
  add("norm", o.model.norm, "layer, or rms");
  add("mlp", o.model.mlp, "gelu, or swiglu");
  add("no-bias", o.no_bias, "linear layers and layer norms have no biases");
  add("untied", o.untied, "the logits have a table of their own, not that of the embedding");
  add("context", o.text.context, "tokens of a sample, and positions that the model knows");
  add("text", o.text.text,
      "files for --dataset text, with commas between them; * and ? as in a shell; a file is a document, or several "
      "with <|endoftext|> between them",
      "FILES");
  add("eval-text", o.text.eval_text, "files for evaluation, as --text; without it, the last part of --text", "FILES");
  add("eval-part", o.text.eval_part, "part of the samples of --text for evaluation, without --eval-text");
  add("vocabulary", o.text.vocabulary,
      "byte pairs: tokenizer.json, GPT-2's vocab.json with merges.txt in the same folder, or their folder; without it, "
      "bytes",
      "PATH");
  add("corpus-samples", o.text.samples, "training samples of an epoch of --dataset corpus");
}

}  // namespace lockstep::models
