// The options of train_recsys, and what follows from them and from the data.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/click_entries.h"
#include "lockstep/data/vocabulary.h"
#include "lockstep/train/callbacks/grow_vocabulary.h"
#include "lockstep/train/options/option_value.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/click_task.h"

template <>
struct lockstep::train::Choices<lockstep::models::ClickLoss> {
  using Loss = lockstep::models::ClickLoss;
  static constexpr std::array kAll{NamedValue{Loss::Bce, "bce"}, NamedValue{Loss::InBatch, "softmax"}};
};

namespace lockstep::recsys {

inline constexpr const char* kVocabulary = "vocabulary";  // the model's buffer with the state of the vocabularies

struct Choice {
  std::string model = "dlrm";
  std::string bottom{}, top{};  // sizes of layers, with commas between them
  std::string group{};          // the name of the field of ids by which AUC is grouped
  std::int64_t top_k = 0;       // items that a prediction has for each sample; 0: it has probabilities
  models::ClickModelConfig network{};
  models::ClickTaskOptions task{};
  datasets::ClickSetOptions data{};
  data::VocabularyOptions vocabulary{};
  std::vector<train::GrowVocabulary::Column> columns{};  // of the ids of a sample; build() fills them in

  void add_options(train::Program& program);
  // Throws Error at site "options" for options that contradict each other.
  void check(const train::Options& options) const;
  // Takes sizes from the session's data and makes the network, with a buffer kVocabulary for --vocabulary. Collective;
  // throws AgreedError.
  std::unique_ptr<models::ClickModel> build(const train::Session& session);

 private:
  void check_are_read() const;
  void take_sizes(const train::Session& session);
};

}  // namespace lockstep::recsys
