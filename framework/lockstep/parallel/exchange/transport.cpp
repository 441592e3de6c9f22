#include "lockstep/parallel/exchange/transport.h"

#include <utility>

namespace lockstep {

Transport::Ticket CommTransport::hold(comm::Request request) {
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(requests_.size()));
    requests_.emplace_back();
    free_.reserve(requests_.capacity());  // so that done() allocates nothing
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  requests_[static_cast<std::size_t>(ticket)] = std::move(request);
  return ticket;
}

}  // namespace lockstep
