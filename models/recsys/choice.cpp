#include "models/recsys/choice.h"

#include <algorithm>

#include "data/datasets/click_bags.h"
#include "data/datasets/click_data.h"
#include "data/datasets/click_negatives.h"
#include "data/datasets/click_record.h"
#include "data/datasets/field_options.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "models/model_choice.h"

namespace lockstep::recsys {
namespace {

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
  program.option("model", choice.model, models::model_text(models::click_models()),
                 models::model_names(models::click_models()));
  program.option("dim", network.dim, "elements of the row that stands for an id");
  program.option("bottom", choice.bottom,
                 "sizes of the hidden layers for dense numbers (dlrm), with commas between them", {}, "N,...");
  program.option("top", choice.top,
                 "sizes of the hidden layers behind the interaction, of the deep part, or of each tower", {}, "N,...");
  program.option("dropout", network.dropout, "probability of dropout behind the hidden layers of --top");
  program.option("user-fields", network.user_fields, "towers: so many of the first fields of ids are the user's");
  program.option("temperature", network.temperature, "towers: the products of vectors are divided by it");
  program.option(
      "loss", choice.task.loss,
      "bce: the cross entropy of the label; softmax: towers find a positive sample's item among those of the "
      "batch, corrected by the frequency of items");
}

void add_negative_options(train::Program& program, Choice& choice) {
  program.option("negatives", choice.data.negatives,
                 "with --loss softmax: items that are drawn for each training sample from those of all samples, as "
                 "negatives in addition to the items of the batch; 0: none");
  program.option("negative-exponent", choice.data.negative_exponent,
                 "items are drawn in proportion to their frequency to this power; 0: each item equally often");
}

void add_metric_options(train::Program& program, Choice& choice) {
  program.option("group-auc", choice.group,
                 "the field of ids, such as userId, whose groups of samples the metric group_auc averages over", {},
                 "FIELD");
  program.option("top-k", choice.top_k,
                 "towers, with --predict: write the N items with the largest scores for each sample, of those that "
                 "occur in the samples");
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
  datasets::for_click_options(data, [&](const char* name, auto& value, const char* text, const char* argument = "") {
    program.option(name, value, text, {}, argument);
  });
}

// How often each row of the item's first field is a candidate: it occurs in the batch, or is drawn for a sample. The
// rows of other fields have 0.
std::vector<double> item_counts(const Choice& choice, const train::Session& session) {
  const datasets::IdRows ids = datasets::ClickRecord::parse(session.data().prediction.record).ids;
  const auto field = static_cast<std::size_t>(choice.network.user_fields);
  if (field >= ids.sizes.size() || ids.mapping == datasets::IdMapping::Vocabulary) return {};
  std::vector<double> all(static_cast<std::size_t>(ids.rows()));
  if (session.options().purpose() != data::Purpose::Train) return all;  // those of the checkpoint replace them
  const std::vector<std::int64_t> counts = datasets::count_rows(session.data(), ids, field, &session.comm());
  const std::vector<double> shares = datasets::item_shares(counts, choice.data.negative_exponent);
  double samples = 0;
  for (const std::int64_t count : counts) samples += static_cast<double>(count);
  const auto first = static_cast<std::size_t>(ids.first_row(field));
  for (std::size_t i = 0; i < counts.size(); ++i)
    all[first + i] = static_cast<double>(counts[i]) + static_cast<double>(choice.data.negatives) * samples * shares[i];
  return all;
}

std::vector<models::BagField> bag_fields(const datasets::IdRows& ids, const std::vector<datasets::ClickBag>& bags) {
  std::vector<models::BagField> fields;
  for (std::size_t f = 0; f < ids.names.size(); ++f) {
    if (!ids.is_bag(f)) continue;
    const datasets::ClickBag* const bag = datasets::find_bag(bags, ids.names[f]);
    const datasets::BagJoin join = bag == nullptr ? datasets::BagJoin::Mean : bag->join;
    fields.push_back({.field = static_cast<std::int64_t>(f),
                      .columns = ids.width(f),
                      .mode = join == datasets::BagJoin::Sum   ? BagMode::Sum
                              : join == datasets::BagJoin::Max ? BagMode::Max
                                                               : BagMode::Mean});
  }
  return fields;
}

}  // namespace

void Choice::add_options(train::Program& program) {
  add_model_options(program, *this);
  add_negative_options(program, *this);
  add_metric_options(program, *this);
  add_id_options(program, *this);
  add_data_options(program, data);
}

// Refuses values that the training would not read.
void Choice::check_are_read() const {
  const Choice standard;
  const auto look = [&](std::string_view option, const auto& value, const auto& usual) {
    models::check_is_read(models::click_models(), model, option, value, usual);
  };
  look("bottom", bottom, standard.bottom);
  look("user-fields", network.user_fields, standard.network.user_fields);
  look("temperature", network.temperature, standard.network.temperature);
  lockstep::check(data.negatives > 0 || data.negative_exponent == standard.data.negative_exponent, "options",
                  "--negative-exponent is {} without --negatives, expected the number of items to draw there, too",
                  data.negative_exponent);
}

void Choice::check(const train::Options& options) const {
  if (options.purpose() == data::Purpose::Train) check_are_read();
  lockstep::check(top_k >= 0 && (top_k == 0 || (model == "towers" && !options.predict.empty())), "options",
                  "--top-k {} with --model {}, expected --model towers and --predict", top_k, model);
  lockstep::check(task.loss == models::ClickLoss::Bce || model == "towers", "options",
                  "--loss softmax with --model {}, expected --model towers", model);
  lockstep::check(data.negatives == 0 || task.loss == models::ClickLoss::InBatch, "options",
                  "--negatives {} without --loss softmax, expected it, too", data.negatives);
  lockstep::check(data.vocabulary > 0 || (vocabulary.admit_after == 1 && vocabulary.evict_after == 0), "options",
                  "--admit-after or --evict-after without --vocabulary, expected the rows of each field there");
}

// Sizes of the network and places of fields, as the record of the data has them.
void Choice::take_sizes(const train::Session& session) {
  const datasets::ClickRecord record = datasets::ClickRecord::parse(session.data().prediction.record);
  network.dense = std::ssize(record.dense);
  network.fields = std::ssize(record.ids.sizes);
  network.rows = record.ids.rows();
  network.bags = bag_fields(record.ids, datasets::parse_bags(data.bags));
  network.bottom = layers("bottom", bottom);
  network.top = layers("top", top);
  task.dense = network.dense > 0;
  vocabulary.fields = network.fields;
  vocabulary.rows = data.vocabulary;
  columns.clear();
  for (std::size_t f = 0; f < record.ids.names.size(); ++f)
    columns.resize(columns.size() + static_cast<std::size_t>(record.ids.width(f)),
                   {.field = static_cast<std::int64_t>(f),
                    .missing = record.ids.is_bag(f) ? record.ids.padding() : record.ids.first_row(f)});
  if (group.empty()) return;
  const auto field = std::ranges::find(record.ids.names, group);
  lockstep::check(field != record.ids.names.end(), "options",
                  "--group-auc is '{}', expected one of the fields of ids: {}", group, joined(record.ids.names, ", "));
  const auto number = static_cast<std::size_t>(field - record.ids.names.begin());
  lockstep::check(!record.ids.is_bag(number), "options",
                  "--group-auc is '{}', which is a bag, expected a field with one id", group);
  task.group = record.ids.first_column(number);
}

std::unique_ptr<models::ClickModel> Choice::build(const train::Session& session) {
  comm::collectively(session.comm(), [&] { take_sizes(session); });
  if (task.loss == models::ClickLoss::InBatch) network.item_counts = item_counts(*this, session);
  task.vectors = top_k > 0;
  task.negatives = data.negatives > 0 && session.options().purpose() == data::Purpose::Train;
  network.sparse = true;
  return comm::collectively(session.comm(), [&] {
    auto made = models::build_click_model(model, network);
    if (data.vocabulary > 0) made->add_state(kVocabulary, data::Vocabulary::state_size(vocabulary));
    return made;
  });
}

}  // namespace lockstep::recsys
