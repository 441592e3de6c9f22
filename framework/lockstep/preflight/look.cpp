#include "lockstep/preflight/look.h"

#include <algorithm>
#include <exception>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

// The messages of one thorough check. A check may fail on some ranks between two messages: those ranks then answer the
// messages of the other ranks in finish(), and the other ranks learn by that answer that the check is over.
class MessagesOfCheck : public Exchange {
 public:
  explicit MessagesOfCheck(Exchange& exchange) : exchange_(exchange) {}
  int rank() const override { return exchange_.rank(); }
  int size() const override { return exchange_.size(); }
  std::vector<std::string> allgather(const std::string& mine) override {
    std::string marked(1, kMessage);
    marked += mine;
    std::vector<std::string> all = exchange_.allgather(marked);
    for (std::size_t i = 0; i < all.size(); ++i) {
      check(all[i].starts_with(kMessage), "doctor", "rank {} could not go on with this check", i);
      all[i].erase(0, 1);
    }
    return all;
  }
  // Returns when all ranks are here.
  void finish() {
    const auto is_over = [](const std::string& text) { return !text.starts_with(kMessage); };
    while (!std::ranges::all_of(exchange_.allgather(""), is_over)) {
    }
  }

 private:
  static constexpr char kMessage = '+';
  Exchange& exchange_;
};

json facts_or_problem(const Check& check, const Subject& subject, Exchange& exchange) {
  try {
    return check.gather(subject, exchange);
  } catch (const std::exception& error) {
    return {{"problem", error.what()}};
  }
}

json gathered(const Check& check, const Subject& subject, Exchange& exchange) {
  if (check.cost != Cost::Thorough) return facts_or_problem(check, subject, exchange);  // it sends no messages
  MessagesOfCheck messages(exchange);
  json facts = facts_or_problem(check, subject, messages);
  messages.finish();
  return facts;
}

Facts facts_of(const Check& check, const std::vector<json>& all, std::vector<Finding>& problems) {
  Facts facts;
  for (const json& rank : all) {
    const json value = rank.at("facts").value(std::string(check.name), json());  // another build may lack the check
    if (value.is_null()) continue;
    if (value.is_object() && value.contains("problem")) {
      problems.push_back({.level = Level::Yellow,
                          .what = formatted("could not be looked at: {}", value.at("problem").get<std::string>()),
                          .where = rank.at("host"),
                          .check = std::string(check.name)});
      continue;
    }
    facts.push_back({.rank = rank.at("rank"), .node = rank.at("node"), .host = rank.at("host"), .value = value});
  }
  return facts;
}

std::vector<Finding> concluded(std::span<const Check* const> checks, const std::vector<std::string>& texts) {
  std::vector<json> all;
  for (const std::string& text : texts) all.push_back(json::parse(text));
  std::vector<Finding> findings;
  for (const Check* check : checks) {
    const Facts facts = facts_of(*check, all, findings);
    if (facts.empty()) continue;
    std::vector<Finding> found;
    try {
      found = check->conclude(facts);
    } catch (const std::exception& error) {  // facts of another build
      found = {{.level = Level::Yellow, .what = formatted("the facts cannot be read: {}", error.what())}};
    }
    for (Finding& finding : found) {
      finding.check = check->name;
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

// The findings, or, where they cannot be told, the problem: all ranks wait for one of them.
json told_by_first(std::span<const Check* const> checks, const std::vector<std::string>& texts) {
  try {
    return to_json(concluded(checks, texts));
  } catch (const std::exception& error) {
    return {{"problem", formatted("the facts of the ranks cannot be read: {}", error.what())}};
  }
}

}  // namespace

std::vector<const Check*> start_checks(bool advised) {
  std::vector<const Check*> checks;
  for (const Check* check : all_checks()) {
    if (check->cost == Cost::Required || (advised && check->cost == Cost::Cheap)) checks.push_back(check);
  }
  return checks;
}

std::vector<Finding> look(std::span<const Check* const> checks, const Subject& subject, Exchange& exchange) {
  // The number of messages does not depend on the checks: ranks with other options have other ones. From the barrier on
  // ranks look at their clocks together.
  exchange.barrier();
  json facts = json::object();
  for (const Check* check : checks) facts[std::string(check->name)] = gathered(*check, subject, exchange);
  const std::vector<std::string> texts = exchange.gather(
      text_of({{"rank", subject.rank}, {"node", subject.node}, {"host", subject.host}, {"facts", std::move(facts)}}));
  const json told = json::parse(exchange.broadcast(exchange.rank() == 0 ? text_of(told_by_first(checks, texts)) : ""));
  if (!told.is_array()) throw comm::AgreedError(formatted("[preflight] {}", told.at("problem").get<std::string>()));
  return findings_from_json(told);
}

}  // namespace lockstep::preflight
