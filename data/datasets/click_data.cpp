#include "data/datasets/click_data.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "data/datasets/click_negatives.h"
#include "data/datasets/click_scan.h"
#include "data/datasets/field_options.h"
#include "data/datasets/prepare_fields.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickDataSite = "options";
constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();  // of a field: IdRows::check()

using data::DatasetOptions;
using data::Purpose;
using data::RunData;

// Raises `largest` to the largest id of each field; the ranks share the samples. Collective.
void raise_to_ids(const data::Dataset& set, const IdRows& of, const comm::Communicator* comm,
                  std::vector<std::int64_t>& largest) {
  comm::collectively(comm, [&] {
    each_ids(set, comm, [&](std::int64_t sample, const std::int64_t* ids) {
      for (std::size_t f = 0; f < largest.size(); ++f) {
        for (const std::int64_t* const end = ids + of.width(f); ids != end; ++ids) {
          if (*ids == kMissingId && of.is_bag(f)) continue;
          if (*ids < 0 || *ids >= kMostRows) [[unlikely]]
            fail("ids", "{}, field '{}': the id is {}, expected a row of the table, from 0 to {}; {}",
                 set.locate(sample), of.names[f], *ids == kMissingId ? "missing" : formatted("{}", *ids), kMostRows - 1,
                 kIdRemedies);
          largest[f] = std::max(largest[f], *ids);
        }
      }
    });
  });
  if (comm == nullptr) return;
  for (std::int64_t& one : largest) one = comm->allreduce(one, comm::ReduceOp::Max);
}

std::vector<std::int64_t> sizes_of(const RunData& data, const ClickSetOptions& o, const IdRows& ids,
                                   const comm::Communicator* comm) {
  const std::size_t fields = ids.names.size();
  if (o.hash_ids > 0) return std::vector<std::int64_t>(fields, o.hash_ids);
  if (o.vocabulary > 0) return std::vector<std::int64_t>(fields, o.vocabulary);
  std::vector<std::int64_t> sizes(fields, 0);
  raise_to_ids(*data.train, ids, comm, sizes);
  if (data.eval) raise_to_ids(*data.eval, ids, comm, sizes);
  for (std::int64_t& size : sizes) ++size;
  return sizes;
}

data::Normalisation normalisation_of(const RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  const data::NormalisationOptions wish{.field = "dense",
                                        .scaling = scaling_of(o.fields),
                                        .log_offset = log_offset_of(o.fields),
                                        .channel_axis = 0,
                                        .mean = o.mean,
                                        .stddev = o.stddev};
  if (wish.scaling == data::Scaling::None && o.mean.empty()) return {};
  return comm == nullptr ? data::measure_normalisation(*data.train, {wish})
                         : data::measure_normalisation(*data.train, {wish}, *comm);
}

// Logits to probabilities: the array "probability" of a file of predictions.
std::vector<data::NamedTensor> probabilities(const Tensor& logits) {
  Tensor result(logits.shape(), logits.dtype());
  const auto fill = [&](auto from, auto to) {
    using T = typename decltype(to)::value_type;
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = static_cast<T>(math::sigmoid(static_cast<double>(from[i])));
  };
  if (logits.dtype() == DType::F64)
    fill(logits.data<double>(), result.data<double>());
  else
    fill(logits.data<float>(), result.data<float>());
  std::vector<data::NamedTensor> arrays;
  arrays.push_back({"probability", std::move(result)});
  return arrays;
}

void check_same_fields(const ClickRecord& trained, const ClickRecord& now) {
  const auto same = [](const std::vector<std::string>& a, const std::vector<std::string>& b, std::string_view option) {
    check(a.size() == b.size(), kClickDataSite, "--{} has {} columns, the model was trained with {}", option, b.size(),
          a.size());
    for (std::size_t i = 0; i < a.size(); ++i)  // other names are other files' names of the same columns
      check(a[i] == b[i] || std::ranges::find(a, b[i]) == a.end(), kClickDataSite,
            "--{} has '{}' where the model was trained with '{}': expected the order {}", option, b[i], a[i],
            joined(a, ", "));
  };
  same(trained.dense, now.dense, "inputs");
  same(trained.ids.names, now.ids.names, "ids");
  check(
      trained.ids.columns() == now.ids.columns(), kClickDataSite,
      "the samples have {} columns of ids with those of bags, the model was trained with {}; expected bags of the same "
      "number of places (--bags)",
      now.ids.columns(), trained.ids.columns());
}

// The rows of a trained model are what they are: an option that says otherwise would change nothing.
void check_same_rows(const ClickRecord& trained, const ClickSetOptions& now) {
  const auto same = [&](std::string_view option, std::int64_t given, IdMapping mapping) {
    const bool used = trained.ids.mapping == mapping && !trained.ids.sizes.empty();
    const std::int64_t then = used ? trained.ids.sizes.front() : 0;
    check(given == then, kClickDataSite,
          "--{} is {}, and the model was trained with --{} {}; expected the value of the training{}", option, given,
          option, then, then == 0 ? ", 0 (none)" : "");
  };
  same("hash-ids", now.hash_ids, IdMapping::Hash);
  same("vocabulary", now.vocabulary, IdMapping::Vocabulary);
}

}  // namespace

void prepare_clicks(RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                    const ClickSetOptions& set) {
  ClickRecord record = comm::collectively(comm, [&] {
    ClickRecord now = ClickRecord::parse(data.prediction.record);
    if (!is_known(o)) return now;
    ClickRecord trained = ClickRecord::parse(*o.record);
    check_same_fields(trained, now);
    check_same_rows(trained, set);
    return trained;
  });
  if (!is_known(o)) {
    if (record.ids.sizes.empty()) record.ids.sizes = sizes_of(data, set, record.ids, comm);
    if (!record.dense.empty()) record.normalisation = normalisation_of(data, o, comm);
  }
  comm::collectively(comm, [&] { record.ids.check(); });
  std::shared_ptr<const ItemList> items;
  const bool draws = set.negatives > 0 && o.purpose == Purpose::Train;
  const auto item_field = static_cast<std::size_t>(set.item_field);
  if (draws) {
    comm::collectively(comm, [&] {
      check(item_field < record.ids.names.size() && !record.ids.is_bag(item_field), kClickDataSite,
            "--negatives with --user-fields {} of {} fields of ids, expected a field with one id behind the user's",
            set.item_field, record.ids.names.size());
    });
    items = std::make_shared<ItemList>(list_items(data, record.ids, item_field, set.negative_exponent, comm));
  }
  comm::collectively(comm, [&] {
    data::Transforms transforms;
    if (!record.dense.empty()) transforms.push_back(std::make_shared<data::Normalise>(record.normalisation, o.floats));
    transforms.push_back(std::make_shared<data::ConvertFloats>(o.floats));
    transforms.push_back(std::make_shared<MapIds>(record.ids));
    data.train_transforms = data.eval_transforms = std::move(transforms);
    if (draws) {  // both sets have the same fields, and an evaluation does not read this one
      data.train_transforms.push_back(std::make_shared<DrawNegatives>(set.negatives, items->columns, items));
      data.eval_transforms.push_back(std::make_shared<DrawNegatives>(set.negatives, items->columns, nullptr));
    }
    if (record.ids.mapping == IdMapping::Vocabulary) data.prediction.finish = set.finish_eval;
    data.prediction.record = record.text();
    data.prediction.decode = set.decode ? set.decode : probabilities;
    const bool has_label =
        std::ranges::find(data.train->fields(), "label", &data::Field::name) != data.train->fields().end();
    if (!has_label) data.prediction.absent = {{"label", Shape{}, o.floats}};
  });
}

std::vector<std::int64_t> count_rows(const RunData& data, const IdRows& ids, std::size_t field,
                                     const comm::Communicator* comm) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ids.sizes.at(field)));
  comm::collectively(comm, [&] {
    check(ids.mapping != IdMapping::Vocabulary, "ids", "the rows of a vocabulary cannot be counted before training");
    each_ids(*data.train, comm, [&](std::int64_t sample, const std::int64_t* values) {
      const auto place = [&] { return data.train->locate(sample); };
      for (std::int64_t c = ids.first_column(field); c < ids.first_column(field + 1); ++c) {
        if (!ids.is_bag(field) || values[c] != kMissingId)
          ++counts[static_cast<std::size_t>(ids.row(field, values[c], place))];
      }
    });
  });
  if (comm != nullptr) comm->allreduce(comm::Buffer(std::span(counts)), comm::ReduceOp::Sum);
  return counts;
}

}  // namespace lockstep::datasets
