#include "lockstep/preflight/look.h"

#include <exception>

#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.dump(-1, ' ', true, json::error_handler_t::replace); }

json gathered(const Check& check, const Subject& subject, Exchange& exchange) {
  try {
    return check.gather(subject, exchange);
  } catch (const std::exception& error) {
    // A thorough check leaves its messages in step by not throwing between them.
    return {{"problem", error.what()}};
  }
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

}  // namespace

std::vector<const Check*> start_checks(bool advised) {
  std::vector<const Check*> checks;
  for (const Check* check : all_checks()) {
    if (check->cost == Cost::Required || (advised && check->cost == Cost::Cheap)) checks.push_back(check);
  }
  return checks;
}

std::vector<Finding> look(std::span<const Check* const> checks, const Subject& subject, Exchange& exchange) {
  exchange.allgather("");  // from here on ranks look at their clocks together
  json facts = json::object();
  for (const Check* check : checks) facts[std::string(check->name)] = gathered(*check, subject, exchange);
  const std::vector<std::string> texts = exchange.allgather(
      text_of({{"rank", subject.rank}, {"node", subject.node}, {"host", subject.host}, {"facts", std::move(facts)}}));
  const std::string findings = exchange.rank() == 0 ? text_of(to_json(concluded(checks, texts))) : "";
  return findings_from_json(json::parse(exchange.allgather(findings).front()));
}

}  // namespace lockstep::preflight
