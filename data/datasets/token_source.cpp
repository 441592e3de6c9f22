#include "data/datasets/token_source.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kTokenSourceSite = "token source";

double total(const TokenSource::State& state) {
  double sum = 0;
  for (const TokenSource::Word& word : state) sum += word.weight;
  return sum;
}

double entropy_of(const TokenSource::State& state) {
  const double all = total(state);
  double sum = 0;
  for (const TokenSource::Word& word : state) sum -= word.weight / all * math::log(word.weight / all);
  return sum;
}

// The probabilities of states after many words. Half of the probability stays where it is, which changes no stationary
// probability and makes chains with a period converge too.
std::vector<double> stationary(const std::vector<TokenSource::State>& states) {
  constexpr int kMostSteps = 100000;
  constexpr double kSettled = 1e-15;
  std::vector<double> now(states.size(), 0), next;
  now[0] = 1;
  for (int i = 0; i < kMostSteps; ++i) {
    next.assign(states.size(), 0);
    for (std::size_t s = 0; s < states.size(); ++s) {
      next[s] += now[s] / 2;
      const double share = now[s] / 2 / total(states[s]);
      for (const TokenSource::Word& word : states[s]) next[word.next] += share * word.weight;
    }
    double change = 0;
    for (std::size_t s = 0; s < states.size(); ++s) change = std::max(change, std::abs(next[s] - now[s]));
    now.swap(next);
    if (change < kSettled) break;
  }
  return now;
}

}  // namespace

TokenSource::TokenSource(std::vector<State> states) : states_(std::move(states)), positions_(states_.size()) {
  check(!states_.empty(), kTokenSourceSite, "there are no states, expected at least one");
  for (std::size_t s = 0; s < states_.size(); ++s) {
    check_state(s);
    add_positions(s);
  }
  for (Position& position : positions_) {
    for (const Step& step : position.steps) position.entropy -= step.probability * math::log(step.probability);
  }
}

void TokenSource::check_state(std::size_t state) const {
  check(!states_[state].empty(), kTokenSourceSite, "state {} has no words, expected at least one", state);
  for (const Word& word : states_[state]) {
    check(!word.tokens.empty(), kTokenSourceSite, "state {} has an empty word, expected tokens", state);
    check(std::isfinite(word.weight) && word.weight > 0, kTokenSourceSite,
          "state {} has a word of weight {}, expected above 0", state, word.weight);
    check(word.next < states_.size(), kTokenSourceSite, "a word of state {} leads to state {}, expected 0 to {}", state,
          word.next, states_.size() - 1);
  }
}

void TokenSource::add_positions(std::size_t state) {
  struct Part {
    std::size_t position;
    std::vector<const Word*> words;  // that begin with the tokens up to this position
    std::size_t depth;
  };
  std::vector<Part> open(1, {.position = state, .words = {}, .depth = 0});
  for (const Word& word : states_[state]) open[0].words.push_back(&word);
  while (!open.empty()) {
    const Part part = std::move(open.back());
    open.pop_back();
    double all = 0;
    std::map<std::int32_t, std::vector<const Word*>> by_token;
    for (const Word* word : part.words) {
      check(word->tokens.size() > part.depth, kTokenSourceSite,
            "state {} has a word that begins another one, expected none", state);
      by_token[word->tokens[part.depth]].push_back(word);
      all += word->weight;
    }
    for (auto& [token, words] : by_token) {
      double weight = 0;
      for (const Word* word : words) weight += word->weight;
      const bool ends = words.size() == 1 && words[0]->tokens.size() == part.depth + 1;
      const std::size_t to = ends ? words[0]->next : positions_.size();
      positions_[part.position].steps.push_back({weight / all, to});
      if (ends) continue;
      positions_.emplace_back();
      open.push_back({.position = to, .words = std::move(words), .depth = part.depth + 1});
    }
  }
}

std::size_t TokenSource::write(RandomStream& random, std::size_t state, std::vector<std::int32_t>& tokens) const {
  const State& words = states_[state];
  double left = random.uniform() * total(words);
  std::size_t chosen = 0;
  while (chosen + 1 < words.size() && left >= words[chosen].weight) left -= words[chosen++].weight;
  tokens.insert(tokens.end(), words[chosen].tokens.begin(), words[chosen].tokens.end());
  return words[chosen].next;
}

double TokenSource::entropy_rate() const {
  const std::vector<double> probability = stationary(states_);
  double entropy = 0, length = 0;
  for (std::size_t s = 0; s < states_.size(); ++s) {
    const double all = total(states_[s]);
    entropy += probability[s] * entropy_of(states_[s]);
    for (const Word& word : states_[s])
      length += probability[s] * word.weight / all * static_cast<double>(word.tokens.size());
  }
  return entropy / length;
}

double TokenSource::entropy_from_start(std::int64_t count) const {
  check(count >= 1, kTokenSourceSite, "the entropy of {} tokens, expected at least 1", count);
  std::vector<double> now(positions_.size(), 0), next;
  now[0] = 1;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    next.assign(positions_.size(), 0);
    for (std::size_t p = 0; p < positions_.size(); ++p) {
      if (now[p] == 0) continue;
      sum += now[p] * positions_[p].entropy;
      for (const Step& step : positions_[p].steps) next[step.to] += now[p] * step.probability;
    }
    now.swap(next);
  }
  return sum / static_cast<double>(count);
}

}  // namespace lockstep::datasets
