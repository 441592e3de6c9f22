// Reports the evaluation of a run that trains nothing: a line of the log for each evaluation set, and a line of
// OUTPUT/evaluations.jsonl, which is appended to and which several jobs may share:
//
//   {"time":"2026-03-01T12:00:00Z","weights":"runs/a/checkpoints/step-0000001200.h5","step":1200,
//    "data":{"dataset":"npy","data_dir":"digits"},"split":"eval","samples":2000,"loss":0.03,"accuracy":0.98}
//
// (one line in the file). `time` is that of the evaluation's end, in UTC; `split` is "eval", or "eval:NAME" of a
// further set; `step` is null if the weights' file does not tell it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class ReportEvaluation : public Callback {
 public:
  struct Settings {
    std::string output;     // the folder of evaluations.jsonl
    std::string weights;    // the file of the weights
    std::int64_t step = 0;  // the update that made them; -1: not known
    // The data that are evaluated: names and values of `data`, in order.
    std::vector<std::pair<std::string, std::string>> data{};
    bool prints = false;  // rank 0 prints the lines of the file, too
  };
  ReportEvaluation(const comm::Communicator& comm, Settings settings) : comm_(comm), settings_(std::move(settings)) {}

  // Collective: throws AgreedError if rank 0 cannot write the file.
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  nlohmann::ordered_json line(const std::string& time, const std::string& split, const Totals& totals) const;
  void append(const std::string& lines) const;

  const comm::Communicator& comm_;
  Settings settings_;
};

}  // namespace lockstep::train
