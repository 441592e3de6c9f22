// The first bytes between two launchers: each proves to the other that it knows the secret, by HMAC over fresh random
// numbers of both, and no byte that a peer without the secret sends is read as anything but that proof. Both sides then
// have the same two keys, one for each direction. Pure: bytes in, bytes out. One thread.
//
//   client -> server   magic (8), version (1), nonce (32)
//   server -> client   magic (8), version (1), nonce (32)
//   client -> server   HMAC(secret, "lockstep launch client", both hellos)
//   server -> client   1, HMAC(secret, "lockstep launch server", both hellos); or 0 and 32 zeros: the proof is wrong
#pragma once

#include <string>
#include <string_view>

#include "tools/launcher/secret.h"

namespace lockstep::launcher {

struct ChannelKeys {
  Digest in{}, out{};
};

class Handshake {
 public:
  enum class Side { Client, Server };
  Handshake(Side side, const Secret& secret);

  // The first bytes to send; none for a server.
  std::string begin() const;
  // Takes from the front of `received` the bytes that the handshake needs, and returns those to send for them. After an
  // error (problem()) there is nothing to be taken any more, and the connection has to be closed once the bytes are
  // sent.
  std::string take(std::string& received);

  bool done() const { return stage_ == Stage::Done; }
  // The peer's mistake; empty: nothing.
  const std::string& problem() const { return problem_; }
  // Of a handshake that is done.
  ChannelKeys keys() const;

 private:
  enum class Stage { Hello, Proof, Done, Failed };
  std::string take_hello(std::string_view hello);
  std::string take_proof(std::string_view proof);
  std::string fail(std::string problem);
  std::string proof_of(Side side) const;
  std::string both() const;

  Side side_;
  Secret secret_;
  Stage stage_ = Stage::Hello;
  std::string own_hello_, peer_hello_, problem_;
};

}  // namespace lockstep::launcher
