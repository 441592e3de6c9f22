// A source of tokens whose entropy is known: a Markov chain of states, each of which writes one of its words and goes
// on to the state behind that word. As no word of a state begins another one, the state is a function of the start and
// of the tokens so far, and the entropy of the next token is known at each of them. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/core/random.h"

namespace lockstep::datasets {

class TokenSource {
 public:
  struct Word {
    std::vector<std::int32_t> tokens;
    double weight;  // above 0; probabilities are weights divided by their sum over the state's words
    std::size_t next;
  };
  using State = std::vector<Word>;

  // A text starts in state 0. Throws Error for a state without words, a word that begins
  // another one of its state, an empty word, and weights or next states that cannot be.
  explicit TokenSource(std::vector<State> states);

  // Appends one word of `state` to `tokens` and returns the next state.
  std::size_t write(RandomStream& random, std::size_t state, std::vector<std::int32_t>& tokens) const;

  // The entropy rate in nats per token: sum_s p_s H_s / sum_s p_s L_s, with the stationary probabilities p of states,
  // the entropy H of the choice among a state's words and their mean length L (Cover and Thomas, "Elements of
  // information theory", 2006, theorem 4.2.4).
  double entropy_rate() const;
  // The mean entropy, in nats per token, of the first `count` tokens of a text: the least mean loss of a model that
  // reads texts from their starts. It differs from the rate as a text starts in state 0.
  double entropy_from_start(std::int64_t count) const;

 private:
  // Positions between two tokens: the tree of the words that a state can still write, with the state's own position as
  // root.
  struct Step {
    double probability;
    std::size_t to;  // a position
  };
  struct Position {
    std::vector<Step> steps;
    double entropy = 0;  // of the next token
  };
  void check_state(std::size_t state) const;
  void add_positions(std::size_t state);

  std::vector<State> states_;
  std::vector<Position> positions_;  // the first states_.size() are those of states
};

}  // namespace lockstep::datasets
