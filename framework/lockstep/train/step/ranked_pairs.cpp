#include "lockstep/train/step/ranked_pairs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/message_tags.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kPairsOfABeat = 1 << 16;  // pairs that are compared or merged between two beats

bool comes_before(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }
bool precedes(const ScoredPair& a, const ScoredPair& b) {
  if (comes_before(a.group, b.group)) return true;
  if (comes_before(b.group, a.group)) return false;
  if (comes_before(a.score, b.score)) return true;
  return !comes_before(b.score, a.score) && comes_before(a.label, b.label);
}

// Beats now and then, for a watchdog to see that a rank with many pairs moves.
class Beats {
 public:
  explicit Beats(Heartbeat& heartbeat) : heartbeat_(heartbeat) {}
  void count_pair() {
    if (++pairs_ % kPairsOfABeat == 0) heartbeat_.beat();
  }

 private:
  Heartbeat& heartbeat_;
  std::int64_t pairs_ = 0;
};

void sort_pairs(std::vector<ScoredPair>& pairs, Heartbeat& heartbeat) {
  heartbeat.beat();
  Beats beats(heartbeat);
  std::ranges::sort(pairs, [&beats](const ScoredPair& a, const ScoredPair& b) {
    beats.count_pair();
    return precedes(a, b);
  });
}

comm::Buffer doubles_of(std::span<ScoredPair> pairs) {
  constexpr std::size_t kNumbers = 3;
  static_assert(sizeof(ScoredPair) == kNumbers * sizeof(double));
  return comm::Buffer(std::span<double>(reinterpret_cast<double*>(pairs.data()), kNumbers * pairs.size()));
}

// The sorted pairs of one rank, on rank 0: its own, or those that arrive piece by piece. The constructor takes the
// memory for a piece; nothing is received before begin().
class Source {
 public:
  Source(const comm::Communicator& comm, Heartbeat& heartbeat, int rank, std::int64_t pairs, std::size_t piece)
      : comm_(&comm), heartbeat_(&heartbeat), rank_(rank), left_(static_cast<std::size_t>(pairs)), piece_(piece) {
    ready_.reserve(std::min(left_, piece_));
  }
  explicit Source(std::vector<ScoredPair> own) : ready_(std::move(own)) {}

  void begin() {
    if (comm_ != nullptr) fetch();
  }
  bool empty() const { return at_ == ready_.size(); }
  const ScoredPair& front() const { return ready_[at_]; }
  void pop() {
    if (++at_ == ready_.size()) fetch();
  }

 private:
  void fetch() {
    ready_.resize(std::min(left_, piece_));
    at_ = 0;
    if (ready_.empty()) return;
    heartbeat_->wait();
    comm_->recv(doubles_of(ready_), rank_, comm::kRankedPairsTag);
    heartbeat_->beat();
    left_ -= ready_.size();
  }

  const comm::Communicator* comm_ = nullptr;  // null, as the next one: of rank 0's own pairs
  Heartbeat* heartbeat_ = nullptr;
  int rank_ = 0;
  std::size_t left_ = 0, piece_ = 0, at_ = 0;
  std::vector<ScoredPair> ready_{};
};

// All sources in one order. Only the constructor allocates: other ranks wait while rank 0 receives.
class Merge {
 public:
  Merge(std::vector<Source> sources, Heartbeat& heartbeat) : sources_(std::move(sources)), beats_(heartbeat) {
    heap_.reserve(sources_.size());
  }
  Merge(const Merge&) = delete;
  Merge& operator=(const Merge&) = delete;

  void begin() {
    for (std::size_t s = 0; s < sources_.size(); ++s) {
      sources_[s].begin();
      if (!sources_[s].empty()) heap_.push_back(s);
    }
    std::ranges::make_heap(heap_, later_);
  }
  bool next(ScoredPair& pair) {
    if (heap_.empty()) return false;
    beats_.count_pair();
    std::ranges::pop_heap(heap_, later_);
    Source& source = sources_[heap_.back()];
    pair = source.front();
    source.pop();
    if (source.empty()) {
      heap_.pop_back();
    } else {
      std::ranges::push_heap(heap_, later_);
    }
    return true;
  }

 private:
  std::vector<Source> sources_;
  Beats beats_;
  std::vector<std::size_t> heap_{};  // of sources with pairs; the first is that of the next pair
  std::function<bool(std::size_t, std::size_t)> later_ = [this](std::size_t a, std::size_t b) {
    return precedes(sources_[b].front(), sources_[a].front());
  };
};

std::vector<Source> sources_of(const comm::Communicator& comm, Heartbeat& heartbeat, std::vector<ScoredPair> mine,
                               const std::vector<std::int64_t>& counts, std::size_t piece) {
  std::vector<Source> sources;
  sources.emplace_back(std::move(mine));
  for (int rank = 1; rank < comm.size(); ++rank)
    sources.emplace_back(comm, heartbeat, rank, counts[static_cast<std::size_t>(rank)], piece);
  return sources;
}

double fold_all(Merge& merge, const std::function<double(const NextPair& next)>& fold) {
  ScoredPair rest;
  merge.begin();
  try {
    const double result = fold([&](ScoredPair& pair) { return merge.next(pair); });
    while (merge.next(rest)) continue;
    return result;
  } catch (...) {
    while (merge.next(rest)) continue;  // other ranks send all that they have
    throw;
  }
}

}  // namespace

double fold_in_order(const comm::Communicator& comm, Heartbeat& heartbeat, std::vector<ScoredPair> mine,
                     const std::function<double(const NextPair& next)>& fold, std::int64_t buffered) {
  check(buffered > 0, "metric", "{} pairs at a time, expected at least 1", buffered);
  sort_pairs(mine, heartbeat);
  heartbeat.wait();
  const std::vector<std::int64_t> counts = comm.allgather(static_cast<std::int64_t>(mine.size()));
  const auto piece = static_cast<std::size_t>(std::max<std::int64_t>(1, buffered / comm.size()));
  std::optional<Merge> merge;  // on rank 0
  comm::collectively(comm, [&] {
    if (comm.is_root()) merge.emplace(sources_of(comm, heartbeat, std::move(mine), counts, piece), heartbeat);
  });
  const double result = comm::collectively(comm, [&] {
    if (merge) {
      heartbeat.beat();
      const double folded = fold_all(*merge, fold);
      heartbeat.wait();
      return folded;
    }
    for (std::size_t first = 0; first < mine.size(); first += piece)
      comm.send(doubles_of(std::span(mine).subspan(first, std::min(piece, mine.size() - first))), 0,
                comm::kRankedPairsTag);
    return 0.0;
  });
  const double of_all = comm.broadcast_value(result);
  heartbeat.beat();
  return of_all;
}

RankedPairs::RankedPairs(std::span<const plan::PlanMetric> metrics) : metrics_(metrics.begin(), metrics.end()) {
  for (const plan::PlanMetric& metric : metrics_) pairs_.emplace_back(metric.lists);
}

void RankedPairs::add(const plan::Plan& plan) {
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    if (metrics_[m].lists == 0) continue;
    const plan::PlanMetric& metric = plan.metrics()[m];
    const Tensor scores = plan.scores(metric), labels = plan.labels(metric), groups = plan.groups(metric);
    const auto lists = static_cast<std::int64_t>(metric.lists);
    const std::int64_t positions = scores.elements() / std::max<std::int64_t>(1, scores.shape()[0] * lists);
    const auto score = scores.data<double>(), label = labels.data<double>();
    const auto group = groups.empty() ? std::span<const double>() : groups.data<double>();
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (std::isnan(label[i])) continue;
      const std::int64_t list = static_cast<std::int64_t>(i) / positions % lists;
      pairs_[m][static_cast<std::size_t>(list)].push_back({score[i], label[i], group.empty() ? 0 : group[i]});
    }
  }
}

std::vector<std::vector<double>> RankedPairs::finish(const comm::Communicator& comm, Heartbeat& heartbeat) {
  std::vector<std::vector<double>> results(metrics_.size());
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    for (std::vector<ScoredPair>& list : pairs_[m])
      results[m].push_back(fold_in_order(comm, heartbeat, std::move(list), metrics_[m].rule.ranked));
  }
  return results;
}

}  // namespace lockstep::train
