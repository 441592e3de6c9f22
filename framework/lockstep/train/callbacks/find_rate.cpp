#include "lockstep/train/callbacks/find_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kMostLines = 20;  // of the table

std::string verdict(const optim::RateTest::Result& result, double lr_per_rate) {
  const std::string end = result.diverged ? "the loss diverged" : "the test ended at its last rate";
  if (!result.steepest)
    return fmt::format("{}, and no rate lowered it: no suggestion; try another --find-lr-range", end);
  const optim::RateTest::Row &steepest = result.rows[*result.steepest], &lowest = result.rows[result.lowest];
  return fmt::format("{}; it was lowest at {:.3g}, and fell most steeply at {:.3g}: try --lr {:.2g}", end, lowest.rate,
                     steepest.rate, steepest.rate * lr_per_rate);
}

}  // namespace

void FindRate::begin_run(std::int64_t /*step*/) { run_.set_rate(test_.next_rate()); }

void FindRate::after_step(const StepEvent& event, Orders& /*orders*/) {
  test_.add(event.totals.loss);
  test_.is_over() ? run_.end() : run_.set_rate(test_.next_rate());
}

void FindRate::end_run(const RunEnd& /*end*/) {
  run_.write([&] {
    const optim::RateTest::Result result = test_.result();
    log()->info("{}", rate_table(result, lr_per_rate_));
    return std::map<std::string, std::string>{{"lr_find.csv", rate_csv(result)},
                                              {"lr_find.json", rate_json(result, lr_per_rate_)}};
  });
}

std::string rate_table(const optim::RateTest::Result& result, double lr_per_rate) {
  const std::size_t rows = result.rows.size(), every = std::max<std::size_t>(1, (rows + kMostLines - 1) / kMostLines);
  std::string text =
      fmt::format("learning-rate range test, {} steps:\n  {:>10} {:>12} {:>12}", rows, "rate", "loss", "smoothed");
  for (std::size_t i = 0; i < rows; ++i) {
    const bool steepest = result.steepest == i, lowest = result.lowest == i;
    if (i % every != 0 && i + 1 != rows && !steepest && !lowest) continue;
    const optim::RateTest::Row& row = result.rows[i];
    text += fmt::format("\n  {:>10.3g} {:>12.5g} {:>12.5g}{}", row.rate, row.loss, row.smoothed,
                        steepest ? "  <- falls most steeply"
                        : lowest ? "  <- lowest"
                                 : "");
  }
  return text + "\n" + verdict(result, lr_per_rate);
}

std::string rate_csv(const optim::RateTest::Result& result) {
  std::string text = "step,learning_rate,loss,smoothed_loss\n";
  std::size_t step = 0;
  for (const optim::RateTest::Row& row : result.rows)
    text += fmt::format("{},{},{},{}\n", ++step, row.rate, row.loss, row.smoothed);
  return text;
}

std::string rate_json(const optim::RateTest::Result& result, double lr_per_rate) {
  nlohmann::ordered_json json{{"suggestion", nullptr}, {"diverged", result.diverged}};
  if (result.steepest) json["suggestion"] = result.rows[*result.steepest].rate * lr_per_rate;
  if (!result.rows.empty()) json["lowest"] = result.rows[result.lowest].rate * lr_per_rate;
  json["lr_per_rate"] = lr_per_rate;
  for (const char* name : {"learning_rate", "loss", "smoothed_loss"}) json[name] = nlohmann::ordered_json::array();
  for (const optim::RateTest::Row& row : result.rows) {
    json["learning_rate"].push_back(row.rate);
    json["loss"].push_back(row.loss);
    json["smoothed_loss"].push_back(row.smoothed);
  }
  return json.dump(1) + "\n";
}

}  // namespace lockstep::train
