// Trains a recommender on clicks or ratings: dense numbers and ids of users, items and contexts in, a probability out.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/click_data.h"
#include "data/datasets/click_entries.h"
#include "data/datasets/click_record.h"
#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/vocabulary.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/callbacks/grow_vocabulary.h"
#include "lockstep/train/run/program.h"
#include "models/zoo/click_task.h"

using namespace lockstep;

template <>
struct lockstep::train::Choices<models::ClickLoss> {
  static constexpr std::array kAll{NamedValue{models::ClickLoss::Bce, "bce"},
                                   NamedValue{models::ClickLoss::InBatch, "softmax"}};
};

namespace {

struct Choice {
  std::string model = "dlrm";
  std::string bottom{}, top{};  // sizes of layers, with commas between them
  std::string group{};          // the name of the field of ids by which AUC is grouped
  models::ClickModelConfig network{};
  models::ClickTaskOptions task{};
  datasets::ClickSetOptions data{};
  data::VocabularyOptions vocabulary{};
};

constexpr const char* kVocabulary = "vocabulary";  // the model's buffer

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const models::ClickModelEntry& entry : models::click_models()) names.push_back(entry.name);
  return names;
}

std::string model_text() {
  std::string text = "the network:";
  for (const models::ClickModelEntry& entry : models::click_models())
    text += formatted("{} {} ({})", &entry == models::click_models().data() ? "" : ";", entry.name, entry.description);
  return text;
}

std::vector<std::int64_t> layers(std::string_view option, const std::string& text) {
  std::vector<std::int64_t> sizes;
  for (const double size : datasets::split_numbers(option, text)) {
    check(size >= 1 && size <= 1 << 20 && size == static_cast<double>(static_cast<std::int64_t>(size)), "options",
          "--{} has a layer of size {}, expected whole numbers from 1 to {}", option, size, 1 << 20);
    sizes.push_back(static_cast<std::int64_t>(size));
  }
  return sizes;
}

void add_model_options(train::Program& program, Choice& choice) {
  models::ClickModelConfig& network = choice.network;
  program.option("model", choice.model, model_text(), model_names());
  program.option("dim", network.dim, "elements of the row that stands for an id");
  program.option("bottom", choice.bottom,
                 "sizes of the hidden layers for dense numbers (dlrm), with commas between them");
  program.option("top", choice.top,
                 "sizes of the hidden layers behind the interaction, of the deep part, or of each tower");
  program.option("dropout", network.dropout, "probability of dropout behind the hidden layers of --top");
  program.option("user-fields", network.user_fields, "towers: so many of the first fields of ids are the user's");
  program.option("temperature", network.temperature, "towers: the products of vectors are divided by it");
  program.option(
      "loss", choice.task.loss,
      "bce: the cross entropy of the label; softmax: towers find a positive sample's item among those of the "
      "batch, corrected by the frequency of items");
}

void add_metric_options(train::Program& program, Choice& choice) {
  program.option("group-auc", choice.group,
                 "the field of ids, such as userId, whose groups of samples the metric group_auc averages over");
}

void add_id_options(train::Program& program, Choice& choice) {
  program.option("hash-ids", choice.data.hash_ids, "map the ids of each field to N rows by a hash; 0: an id is a row");
  program.option("vocabulary", choice.data.vocabulary,
                 "rows of each field that ids get as they are seen in training; row 0 stands for unknown ids; 0: none");
  program.option("admit-after", choice.vocabulary.admit_after, "with --vocabulary: an id gets a row after N sightings");
  program.option("evict-after", choice.vocabulary.evict_after,
                 "with --vocabulary: an id that N steps have not seen loses its row; 0: never");
}

void add_data_options(train::Program& program, datasets::ClickSetOptions& data) {
  program.option("ids", data.ids, "csv, hdf5, arrays: columns or arrays of ids, with commas between them");
  program.option("positive-rating", data.positive, "ratings: the label is 1 from this rating on");
  datasets::SyntheticClicksOptions& clicks = data.synthetic;
  program.option("click-samples", clicks.samples, "clicks: samples for training");
  program.option("click-eval-samples", data.eval_samples, "clicks: samples for evaluation");
  program.option("click-dense", clicks.dense, "clicks: dense numbers of a sample");
  program.option("click-fields", clicks.fields, "clicks: fields of ids");
  program.option("click-ids", clicks.ids, "clicks: ids of each field");
  program.option("click-latent", clicks.latent,
                 "clicks: elements of the vectors of ids in the model that draws clicks");
  program.option("click-exponent", clicks.exponent, "clicks: the n-th most frequent id occurs as often as n^-N says");
  program.option("click-wide", clicks.wide, "clicks: ids are hashes of 63 bits");
  program.option("click-seed", clicks.seed, "clicks: seed of the model that draws them");
}

void check_choice(const Choice& choice) {
  check(choice.task.loss == models::ClickLoss::Bce || choice.model == "towers", "options",
        "--loss softmax with --model {}, expected --model towers", choice.model);
  check(choice.data.vocabulary > 0 || (choice.vocabulary.admit_after == 1 && choice.vocabulary.evict_after == 0),
        "options", "--admit-after or --evict-after without --vocabulary, expected the rows of each field there");
}

// Sizes that follow from the data.
void complete(Choice& choice, const train::Session& session) {
  const datasets::ClickRecord record = datasets::ClickRecord::parse(session.data().record);
  models::ClickModelConfig& network = choice.network;
  network.dense = std::ssize(record.dense);
  network.fields = std::ssize(record.ids.sizes);
  network.rows = record.ids.rows();
  network.bottom = layers("bottom", choice.bottom);
  network.top = layers("top", choice.top);
  choice.task.dense = network.dense > 0;
  if (choice.group.empty()) return;
  const auto field = std::ranges::find(record.ids.names, choice.group);
  check(field != record.ids.names.end(), "options", "--group-auc is '{}', expected one of the fields of ids: {}",
        choice.group, joined(record.ids.names, ", "));
  choice.task.group = field - record.ids.names.begin();
}

// How often each row of the item's first field occurs; the rows of other fields have 0.
std::vector<std::int64_t> item_counts(const Choice& choice, const train::Session& session) {
  const datasets::IdRows ids = datasets::ClickRecord::parse(session.data().record).ids;
  const auto field = static_cast<std::size_t>(choice.network.user_fields);
  if (field >= ids.sizes.size() || ids.mapping == datasets::IdMapping::Vocabulary) return {};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ids.rows()));
  if (session.options().purpose() != data::Purpose::Train) return counts;  // those of the checkpoint replace them
  std::int64_t first = 0;
  for (std::size_t f = 0; f < field; ++f) first += ids.sizes[f];
  std::ranges::copy(datasets::count_rows(session.data(), field, &session.comm()), counts.begin() + first);
  return counts;
}

train::GrowVocabulary* add_vocabulary(Choice& choice, train::Session& session, models::ClickModel& network) {
  choice.vocabulary.fields = choice.network.fields;
  choice.vocabulary.rows = choice.data.vocabulary;
  network.add_state(kVocabulary, data::Vocabulary::state_size(choice.vocabulary));
  return &session.add<train::GrowVocabulary>(
      choice.vocabulary, kVocabulary, session.comm(),
      [&session]() -> plan::ParameterStore& { return session.trainer().model().parameters(); });
}

}  // namespace

int main(int argc, char** argv) {
  Choice choice;
  const std::vector<data::DatasetEntry> catalogue = datasets::click_entries(choice.data);
  train::Program program("train_recsys", "Trains a recommender on clicks or ratings.",
                         {.dataset = {.name = "clicks", .fields = {.inputs = "dense", .normalise = "none"}},
                          .epochs = 3,
                          .batch_size = 256,
                          .optimizer = {.rule = optim::Rule::Adam},
                          .rate = {.peak = 1e-3}},
                         catalogue);
  add_model_options(program, choice);
  add_metric_options(program, choice);
  add_id_options(program, choice);
  add_data_options(program, choice.data);
  program.check([&] { check_choice(choice); });
  train::GrowVocabulary* vocabulary = nullptr;  // the session's; null: ids need none
  choice.data.finish_eval = [&](data::Batch& batch) { vocabulary->look_up(batch); };
  return program.run(argc, argv, [&](train::Session& session) {
    complete(choice, session);
    if (choice.task.loss == models::ClickLoss::InBatch) choice.network.item_counts = item_counts(choice, session);
    const auto network = models::build_click_model(choice.model, choice.network);
    if (choice.data.vocabulary > 0) vocabulary = add_vocabulary(choice, session, *network);
    train::Trainer& trainer =
        session.build(*network, [&](const plan::Inputs& in) { return models::click_task(*network, in, choice.task); });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) {
        if (vocabulary != nullptr) vocabulary->grow(batch);
        session.report(trainer.step(batch, session.learning_rate()));  // forward, backward, reduction, update
      }
      session.finish_epoch();  // evaluation, checkpoint
    }
  });
}
