#include "lockstep/parallel/exchange/transport.h"

#include <utility>

namespace lockstep::parallel {

Transport::MessageHandle CommTransport::hold(comm::Request request) {
  if (free_.empty()) {
    free_.push_back(static_cast<MessageHandle>(requests_.size()));
    requests_.emplace_back();
    free_.reserve(requests_.capacity());  // so that done() allocates nothing
  }
  const MessageHandle handle = free_.back();
  free_.pop_back();
  requests_[static_cast<std::size_t>(handle)] = std::move(request);
  return handle;
}

}  // namespace lockstep::parallel
