#include "data/datasets/click_data.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickDataSite = "options";

using data::DatasetOptions;
using data::Purpose;
using data::RunData;

// Runs `work` and throws on all ranks if it throws on one.
template <class Work>
auto together(const comm::Communicator* comm, const Work& work) {
  return comm == nullptr ? work() : comm::collectively(*comm, work);
}

bool is_known(const DatasetOptions& o) { return o.purpose != Purpose::Train && o.record != nullptr; }

// Calls `take` with the ids of a part of the samples, which is this rank's.
template <class Take>
void each_ids(const data::Dataset& set, const comm::Communicator* comm, const Take& take) {
  const Range mine = comm == nullptr ? Range{0, set.size()} : part_of(set.size(), comm->size(), comm->rank());
  std::vector<std::vector<std::byte>> memory;
  std::vector<std::byte*> out;
  for (const data::Field& field : set.fields()) out.push_back(memory.emplace_back(field.bytes()).data());
  const std::size_t ids = data::find_field(kClickDataSite, set.fields(), "ids");
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    set.read(i, out);
    take(i, reinterpret_cast<const std::int64_t*>(out[ids]));
  }
}

// Raises `largest` to the largest id of each field; the ranks share the samples. Collective.
void raise_to_ids(const data::Dataset& set, const comm::Communicator* comm, std::vector<std::int64_t>& largest) {
  together(comm, [&] {
    each_ids(set, comm, [&](std::int64_t sample, const std::int64_t* ids) {
      for (std::size_t f = 0; f < largest.size(); ++f) {
        if (ids[f] < 0) [[unlikely]]
          fail("ids", "{}, field {}: the id is {}, expected a number from 0 on; --hash-ids N takes any id",
               set.locate(sample), f, ids[f] == kMissingId ? "missing" : formatted("{}", ids[f]));
        largest[f] = std::max(largest[f], ids[f]);
      }
    });
  });
  if (comm == nullptr) return;
  for (std::int64_t& one : largest) one = comm->allreduce(one, comm::ReduceOp::Max);
}

std::vector<std::int64_t> sizes_of(const RunData& data, const ClickSetOptions& o, std::size_t fields,
                                   const comm::Communicator* comm) {
  if (o.hash_ids > 0) return std::vector<std::int64_t>(fields, o.hash_ids);
  if (o.vocabulary > 0) return std::vector<std::int64_t>(fields, o.vocabulary);
  std::vector<std::int64_t> sizes(fields, 0);
  raise_to_ids(*data.train, comm, sizes);
  if (data.eval) raise_to_ids(*data.eval, comm, sizes);
  for (std::int64_t& size : sizes) size += size < std::numeric_limits<std::int64_t>::max() ? 1 : 0;
  return sizes;
}

data::Normalisation normalisation_of(const RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  data::NormalisationOptions wish{.field = "dense", .channel_axis = 0, .mean = o.mean, .stddev = o.stddev};
  wish.scaling = o.fields.normalise == "none"    ? data::Scaling::None
                 : o.fields.normalise == "range" ? data::Scaling::MinMax
                                                 : data::Scaling::MeanStd;
  if (o.fields.normalise == "log") wish.log_offset = o.fields.log_offset;
  if (o.fields.normalise == "none" && o.mean.empty()) return {};
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
  };
  same(trained.dense, now.dense, "inputs");
  same(trained.ids.names, now.ids.names, "ids");
}

}  // namespace

void prepare_clicks(RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                    const ClickSetOptions& set) {
  ClickRecord record = together(comm, [&] {
    ClickRecord now = ClickRecord::parse(data.prediction.record);
    if (!is_known(o)) return now;
    ClickRecord trained = ClickRecord::parse(*o.record);
    check_same_fields(trained, now);
    return trained;
  });
  if (!is_known(o)) {
    if (record.ids.sizes.empty()) record.ids.sizes = sizes_of(data, set, record.ids.names.size(), comm);
    if (!record.dense.empty()) record.normalisation = normalisation_of(data, o, comm);
  }
  together(comm, [&] {
    record.ids.check();
    data::Transforms transforms;
    if (!record.dense.empty()) transforms.push_back(std::make_shared<data::Normalise>(record.normalisation, o.floats));
    transforms.push_back(std::make_shared<data::ConvertFloats>(o.floats));
    transforms.push_back(std::make_shared<MapIds>(record.ids));
    data.train_transforms = data.eval_transforms = std::move(transforms);
    if (record.ids.mapping == IdMapping::Vocabulary) data.prediction.finish = set.finish_eval;
    data.prediction.record = record.text();
    data.prediction.decode = set.decode ? set.decode : probabilities;
    const bool has_label =
        std::ranges::find(data.train->fields(), "label", &data::Field::name) != data.train->fields().end();
    if (!has_label) data.prediction.absent = {{"label", Shape{}, o.floats}};
  });
}

std::vector<std::int64_t> count_rows(const RunData& data, std::size_t field, const comm::Communicator* comm) {
  const IdRows ids = ClickRecord::parse(data.prediction.record).ids;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ids.sizes.at(field)));
  together(comm, [&] {
    check(ids.mapping != IdMapping::Vocabulary, "ids", "the rows of a vocabulary cannot be counted before training");
    each_ids(*data.train, comm, [&](std::int64_t sample, const std::int64_t* values) {
      const auto place = [&] { return data.train->locate(sample); };
      ++counts[static_cast<std::size_t>(ids.row(field, values[field], place))];
    });
  });
  if (comm != nullptr) comm->allreduce(comm::Buffer(std::span(counts)), comm::ReduceOp::Sum);
  return counts;
}

}  // namespace lockstep::datasets
