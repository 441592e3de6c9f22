// The caller's part of control blocks: bits that any rank may set and all ranks see, and sums over ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lockstep::train {

class StepVotes {
 public:
  using Requests = std::function<std::uint64_t()>;
  using Vote = std::function<std::uint64_t(std::span<double> sums)>;

  explicit StepVotes(std::size_t sums) : sums_(sums) {}

  void listen(Requests mine, std::uint64_t ends_evaluation);  // throws Error for an empty function, as vote() does
  void vote(Vote mine);

  std::uint64_t ask() const { return requests_(); }  // this rank's requests
  bool ends_evaluation(std::uint64_t bits) const { return (bits & ends_evaluation_) != 0; }
  // Returns this rank's requests and votes for a step; the vote function may add to sums().
  std::uint64_t ask_for_step();
  std::span<const double> sums() const { return sums_; }

  void agreed(std::uint64_t bits) { agreed_ = bits; }
  std::uint64_t agreed() const { return agreed_; }  // bits of all ranks in the last step or evaluation

 private:
  Requests requests_ = [] { return std::uint64_t{0}; };
  Vote vote_ = [](std::span<double>) { return std::uint64_t{0}; };
  std::uint64_t ends_evaluation_ = 0, agreed_ = 0;
  std::vector<double> sums_;  // this rank's sums of the present step
};

}  // namespace lockstep::train
