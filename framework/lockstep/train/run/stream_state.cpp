#include "lockstep/train/run/stream_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/message_tags.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"

namespace lockstep::train {
namespace {

using data::Reservoir;

constexpr const char* kStreamStateSite = "stream";
constexpr std::size_t kPiece = std::size_t{4} << 20;  // bytes of a message

// A tensor of each rank's reservoir: a field, or the ids.
struct Column {
  std::string name;
  Shape shape;  // of one sample
  DType dtype;
  std::size_t offset;  // in Sample::bytes; not used for ids
  bool is_ids;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
  std::string tensor(std::int64_t rank) const { return fmt::format("reservoir/rank-{:04}/{}", rank, name); }
  void take(const Reservoir::Sample& sample, std::byte* to) const {
    is_ids ? std::memcpy(to, &sample.id, sizeof sample.id) : std::memcpy(to, sample.bytes.data() + offset, bytes());
  }
  void give(const std::byte* from, Reservoir::Sample& sample) const {
    is_ids ? std::memcpy(&sample.id, from, sizeof sample.id) : std::memcpy(sample.bytes.data() + offset, from, bytes());
  }
};

std::vector<Column> columns_of(const Reservoir& reservoir) {
  std::vector<Column> columns{{"ids", Shape{}, DType::I64, 0, true}};
  std::size_t offset = 0;
  for (const data::Field& field : reservoir.fields()) {
    columns.push_back({"fields/" + field.name, field.shape, field.dtype, offset, false});
    offset += field.bytes();
  }
  return columns;
}

std::int64_t piece_of(const Column& column) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kPiece / std::max<std::size_t>(1, column.bytes())));
}

std::int64_t most(const std::vector<std::int64_t>& counts) {
  return counts.empty() ? 0 : *std::ranges::max_element(counts);
}

}  // namespace

StreamProgress StreamProgress::continued(int ranks, std::int64_t capacity) const {
  StreamProgress now = *this;
  const auto size = static_cast<std::size_t>(ranks);
  if (now.consumed.empty() || now.consumed.back().size() != size) now.consumed.emplace_back(size, 0);
  now.reservoirs.assign(capacity > 0 ? size : 0, {});
  if (capacity == 0 || reservoirs.empty()) return now;
  std::int64_t offered = 0, batches = 0;
  for (const Reservoir::Counts& counts : reservoirs) {
    offered += counts.offered;
    batches = std::max(batches, counts.batches);
  }
  const std::vector<std::vector<SampleOrigin>> dealt = deal(reservoirs, ranks, capacity);
  for (std::size_t r = 0; r < size; ++r) {
    const std::int64_t held = std::ssize(dealt[r]);
    now.reservoirs[r] = {.offered = std::max(offered / ranks, held), .batches = batches, .held = held};
    if (reservoirs.size() == size) {
      now.reservoirs[r] = reservoirs[r];
      now.reservoirs[r].held = held;
    }
  }
  return now;
}

data::StreamStart StreamProgress::start(int rank) const {
  data::StreamStart start{.rank = rank, .size = static_cast<int>(consumed.back().size())};
  for (std::size_t s = 0; s + 1 < consumed.size(); ++s) {
    start.next_id += std::ssize(consumed[s]) * most(consumed[s]);
    start.earlier.push_back(consumed[s]);
  }
  start.consumed = consumed.back()[static_cast<std::size_t>(rank)];
  start.next_id += rank + start.consumed * start.size;
  return start;
}

nlohmann::json to_json(const StreamProgress& progress) {
  nlohmann::json reservoirs = nlohmann::json::array();
  for (const Reservoir::Counts& c : progress.reservoirs)
    reservoirs.push_back({{"offered", c.offered}, {"batches", c.batches}, {"held", c.held}});
  return {{"consumed", progress.consumed}, {"reservoirs", reservoirs}};
}

StreamProgress stream_progress(const nlohmann::json& metadata, const std::string& file) {
  StreamProgress progress;
  try {
    const nlohmann::json& saved = metadata.at(kStreamKey);
    progress.consumed = saved.at("consumed").get<std::vector<std::vector<std::int64_t>>>();
    for (const nlohmann::json& c : saved.at("reservoirs"))
      progress.reservoirs.push_back({.offered = c.at("offered").get<std::int64_t>(),
                                     .batches = c.at("batches").get<std::int64_t>(),
                                     .held = c.at("held").get<std::int64_t>()});
  } catch (const nlohmann::json::exception& error) {
    fail("resume", "{}: '{}' in its metadata cannot be used: {}", file, kStreamKey, error.what());
  }
  bool valid = !progress.consumed.empty();
  for (const auto& counts : progress.consumed)
    valid = valid && !counts.empty() && std::ranges::all_of(counts, [](std::int64_t n) { return n >= 0; });
  valid = valid && (progress.reservoirs.empty() || progress.reservoirs.size() == progress.consumed.back().size());
  for (const Reservoir::Counts& c : progress.reservoirs)
    valid = valid && c.held >= 0 && c.held <= c.offered && c.batches >= 0;
  check(valid, "resume", "{}: '{}' in its metadata has counts that are negative or do not belong together", file,
        kStreamKey);
  return progress;
}

std::vector<std::vector<SampleOrigin>> deal(const std::vector<Reservoir::Counts>& saved, int ranks,
                                            std::int64_t capacity) {
  std::vector<std::vector<SampleOrigin>> dealt(static_cast<std::size_t>(ranks));
  const bool same = saved.size() == dealt.size();
  std::size_t next = 0;
  for (std::size_t rank = 0; rank < saved.size(); ++rank) {
    for (std::int64_t slot = 0; slot < saved[rank].held; ++slot)
      dealt[same ? rank : next++ % dealt.size()].push_back({static_cast<std::int64_t>(rank), slot});
  }
  for (std::size_t r = 0; r < dealt.size(); ++r) {
    std::vector<SampleOrigin>& mine = dealt[r];
    if (std::ssize(mine) <= capacity) continue;
    RandomStream choice(hash_name("deal"), r);  // the first `capacity` of a random order
    for (std::size_t i = 0; i < static_cast<std::size_t>(capacity); ++i)
      std::swap(mine[i], mine[i + static_cast<std::size_t>(choice.below(mine.size() - i))]);
    mine.resize(static_cast<std::size_t>(capacity));
  }
  return dealt;
}

Spooled spool_reservoirs(const comm::Communicator& comm, Heartbeat& heartbeat, const io::Folder* folder,
                         const Reservoir& reservoir, const StreamProgress& progress) {
  Spooled result;
  const auto or_note = [&](const auto& work) {  // the other ranks send, also after an error of rank 0
    if (!result.error.empty()) return;
    try {
      work();
    } catch (const std::exception& error) {
      result.error = error.what();
    }
  };
  if (comm.is_root()) or_note([&] { result.spool = std::make_unique<io::TensorSpool>(*folder); });
  const Reservoir::Frozen frozen = reservoir.freeze();
  std::vector<std::byte> piece;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::int64_t held = progress.reservoirs[static_cast<std::size_t>(rank)].held;
    if (!comm.is_root() && rank != comm.rank()) continue;
    for (const Column& column : columns_of(reservoir)) {
      if (comm.is_root())
        or_note([&] { result.spool->begin({column.tensor(rank), column.shape.batched(held), column.dtype}); });
      for (std::int64_t at = 0; at < held; at += piece_of(column)) {
        const std::int64_t rows = std::min(piece_of(column), held - at);
        piece.resize(static_cast<std::size_t>(rows) * column.bytes());
        if (rank == comm.rank()) {
          for (std::int64_t i = 0; i < rows; ++i)
            column.take(frozen.at(at + i), piece.data() + static_cast<std::size_t>(i) * column.bytes());
        }
        if (!comm.is_root()) comm.send(piece, 0, comm::kReservoirTag);
        if (comm.is_root() && rank != 0) comm.recv(comm::Buffer(piece), rank, comm::kReservoirTag);
        if (comm.is_root()) {
          heartbeat.beat();
          or_note([&] { result.spool->append(piece); });
        }
      }
    }
  }
  if (comm.is_root()) or_note([&] { result.spool->tensors(); });
  result.error = comm.broadcast_string(result.error);
  return result;
}

namespace {

// On rank 0: returns the tensor of a rank's column; throws Error if it is missing or of another shape.
const Tensor& tensor_of(const io::TensorSource& source, const Column& column, std::int64_t rank, std::int64_t held,
                        const std::string& file) {
  const auto found = std::ranges::find(source.infos, column.tensor(rank), &io::TensorInfo::name);
  check(found != source.infos.end(), kStreamStateSite, "{}: there is no tensor {}", file, column.tensor(rank));
  const Shape expected = column.shape.batched(held);
  check(found->shape == expected && found->dtype == column.dtype, kStreamStateSite, "{}: {} is {} {}, expected {} {}",
        file, found->name, name_of(found->dtype), found->shape.str(), name_of(column.dtype), expected.str());
  return source.tensor(static_cast<std::size_t>(found - source.infos.begin())).tensor;
}

}  // namespace

void restore_reservoir(const comm::Communicator& comm, const io::TensorSource& of_root, const StreamProgress& saved,
                       const std::string& file, Reservoir& reservoir) {
  const std::int64_t capacity = reservoir.options().capacity;
  const auto dealt = deal(saved.reservoirs, comm.size(), capacity);
  const auto me = static_cast<std::size_t>(comm.rank());
  std::vector<Reservoir::Sample> samples(dealt[me].size());
  comm::collectively(comm, [&] {
    for (Reservoir::Sample& sample : samples) sample.bytes.resize(reservoir.sample_bytes());
  });
  std::vector<std::byte> rows;  // of a message
  for (std::size_t from = 0; from < saved.reservoirs.size(); ++from) {
    for (const Column& column : columns_of(reservoir)) {
      const Tensor* tensor = nullptr;
      comm::collectively(comm, [&] {
        if (comm.is_root())
          tensor = &tensor_of(of_root, column, static_cast<std::int64_t>(from), saved.reservoirs[from].held, file);
      });
      for (std::size_t to = 0; to < dealt.size(); ++to) {
        if (!comm.is_root() && to != me) continue;
        std::vector<std::size_t> slots;  // of the receiver
        for (std::size_t s = 0; s < dealt[to].size(); ++s) {
          if (dealt[to][s].rank == static_cast<std::int64_t>(from)) slots.push_back(s);
        }
        const auto most_rows = static_cast<std::size_t>(piece_of(column));
        for (std::size_t at = 0; at < slots.size(); at += most_rows) {
          const auto piece = std::span(slots).subspan(at, std::min(most_rows, slots.size() - at));
          rows.resize(piece.size() * column.bytes());
          for (std::size_t i = 0; i < piece.size() && tensor != nullptr; ++i)
            std::memcpy(rows.data() + i * column.bytes(),
                        tensor->raw() + static_cast<std::size_t>(dealt[to][piece[i]].slot) * column.bytes(),
                        column.bytes());
          if (comm.is_root() && to != me) comm.send(rows, static_cast<int>(to), comm::kReservoirTag);
          if (!comm.is_root()) comm.recv(comm::Buffer(rows), 0, comm::kReservoirTag);
          for (std::size_t i = 0; i < piece.size() && to == me; ++i)
            column.give(rows.data() + i * column.bytes(), samples[piece[i]]);
        }
      }
    }
  }
  const StreamProgress now = saved.continued(comm.size(), capacity);
  comm::collectively(comm, [&] { reservoir.restore(std::move(samples), now.reservoirs[me]); });
}

}  // namespace lockstep::train
