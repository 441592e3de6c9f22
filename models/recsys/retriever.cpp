#include "models/recsys/retriever.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "data/datasets/click_record.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/gather_lists.h"
#include "lockstep/core/error.h"
#include "lockstep/core/partition.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::recsys {
namespace {

constexpr std::string_view kRetrieverSite = "top-k";
constexpr std::int64_t kGroup = 256;  // items whose vectors are computed together

using Items = std::map<std::vector<std::int64_t>, std::int64_t>;  // the first sample of each item

// The items of this rank's part of the samples.
Items items_of(const data::Dataset& set, const comm::Communicator& comm, std::int64_t first_column) {
  const std::size_t ids = data::find_field(kRetrieverSite, set.fields(), "ids");
  data::SampleBuffers sample(set.fields());
  const auto* values = reinterpret_cast<const std::int64_t*>(sample.out[ids]);
  const std::int64_t columns = set.fields()[ids].shape.elements();
  Items items;
  const Range mine = part_of(set.size(), comm.size(), comm.rank());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    set.read(i, sample.out);
    items.try_emplace(std::vector<std::int64_t>(values + first_column, values + columns), i);
  }
  return items;
}

// A block (rows, count) of columns of a matrix, from `first` on.
Tensor columns(const Tensor& matrix, std::int64_t first, std::int64_t count) {
  const std::int64_t rows = matrix.shape()[0], all = matrix.shape()[1];
  const Tensor f32 = matrix.dtype() == DType::F32 ? matrix.clone() : matrix.to(DType::F32);
  Tensor part({rows, count}, DType::F32);
  const auto from = f32.data<float>();
  for (std::int64_t r = 0; r < rows; ++r)
    std::copy_n(from.begin() + r * all + first, count, part.data<float>().begin() + r * count);
  return part;
}

}  // namespace

// Sets ids_ and returns a sample for each item, in the order of the items.
std::vector<std::int64_t> Retriever::find_samples(const train::Session& session) {
  const comm::Communicator& comm = session.comm();
  const data::Dataset& set = session.data().predicted();
  const datasets::IdRows ids = datasets::ClickRecord::parse(session.data().prediction.record).ids;
  const std::int64_t first = ids.first_column(static_cast<std::size_t>(first_field_));
  const Items mine = comm::collectively(comm, [&] { return items_of(set, comm, first); });
  width_ = ids.columns() - first;
  std::vector<std::int64_t> sent;
  for (const auto& [item, sample] : mine) {
    sent.insert(sent.end(), item.begin(), item.end());
    sent.push_back(sample);
  }
  const std::vector<std::int64_t> all = comm::gather_lists<std::int64_t>(comm, sent);
  Items items;
  for (std::int64_t at = 0; at < std::ssize(all); at += width_ + 1) {
    const auto begin = all.begin() + at;
    items.try_emplace(std::vector<std::int64_t>(begin, begin + width_), *(begin + width_));
  }
  std::vector<std::int64_t> samples;
  for (const auto& [item, sample] : items) {
    ids_.insert(ids_.end(), item.begin(), item.end());
    samples.push_back(sample);
  }
  return samples;
}

void Retriever::prepare(train::Session& session) {
  std::vector<std::int64_t> samples = find_samples(session);
  const auto items = std::ssize(samples);
  session.trainer().settle();
  comm::collectively(session.comm(), [&] {
    check(k_ <= items, kRetrieverSite, "--top-k is {}, expected at most {}, the number of items in the samples", k_,
          items);
    // The session owns the set, which outlives this call.
    const std::shared_ptr<const data::Dataset> whole(&session.data().predicted(), [](const data::Dataset*) {});
    const data::SubsetDataset set(whole, std::move(samples));
    data::Loader loader(
        set, data::DistributedSampler({.size = items, .global_batch = std::min(kGroup, items), .shuffle = false}),
        session.data().eval_transforms, {.threads = 0, .finish = session.data().prediction.finish});
    Tensor vectors;
    std::int64_t row = 0;
    for (const data::Batch& batch : loader.epoch()) {
      const Tensor both = session.trainer().predict(batch);
      const std::int64_t dim = both.shape()[1] / 2;
      const Tensor part = columns(both, dim, dim);
      if (vectors.empty()) vectors = Tensor({items, dim}, DType::F32);
      std::memcpy(vectors.raw() + static_cast<std::size_t>(row * dim) * sizeof(float), part.raw(), part.bytes());
      row += batch.samples();
    }
    index_ = std::make_unique<infer::ItemIndex>(vectors);
  });
}

std::vector<data::NamedTensor> Retriever::decode(const Tensor& prediction) const {
  const infer::ItemIndex::Found found = index_->search(columns(prediction, 0, prediction.shape()[1] / 2), k_);
  const std::int64_t samples = prediction.shape()[0];
  Tensor ids(width_ == 1 ? Shape{samples, k_} : Shape{samples, k_, width_}, DType::I64);
  auto to = ids.data<std::int64_t>().begin();
  for (const std::int64_t item : found.items.data<std::int64_t>())
    to = std::copy_n(ids_.begin() + item * width_, width_, to);
  std::vector<data::NamedTensor> arrays;
  arrays.push_back({"item", std::move(ids)});
  arrays.push_back({"score", found.scores.clone()});
  return arrays;
}

}  // namespace lockstep::recsys
