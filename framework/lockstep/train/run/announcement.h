// Logs the facts of a run before its first step: ranks, hosts, cores, model, memory, communication and data.
#pragma once

#include "lockstep/train/prepare/memory_forecast.h"
#include "lockstep/train/run/run_parts.h"

namespace lockstep::train {

// Forecasts the memory of this rank; `before`: bytes that were resident before the model was compiled.
MemoryForecast forecast_memory(const RunParts& run, std::size_t before);
// Logs the facts; collective.
void announce(const RunParts& run, const MemoryForecast& memory);

}  // namespace lockstep::train
