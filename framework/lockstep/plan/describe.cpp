#include "lockstep/plan/describe.h"

#include <fmt/format.h>

namespace lockstep::plan {
namespace {

double mebibytes(std::size_t bytes) { return static_cast<double>(bytes) / 1048576; }

std::string forms(const Assembly& assembly, const std::vector<int>& buffers) {
  std::string list;
  for (int b : buffers) {
    const PlanBuffer& p = assembly.buffers[static_cast<std::size_t>(b)];
    list += fmt::format("{}{}:{}", list.empty() ? "" : " ", p.type.str(), p.layout.str());
  }
  return list;
}

}  // namespace

std::size_t bytes_of(const Assembly& assembly, const PlanStep& step) {
  std::size_t total = 0;
  for (const auto* list : {&step.inputs, &step.outputs}) {
    for (int b : *list) {
      const PlanBuffer& p = assembly.buffers[static_cast<std::size_t>(b)];
      total += static_cast<std::size_t>(p.layout.storage_elements(p.type.shape)) * size_of(p.type.dtype);
    }
  }
  return total;
}

double flops_of(const Assembly& assembly) {
  double total = 0;
  for (const PlanStep& step : assembly.steps) total += step.flops;
  return total;
}

std::string describe(const Assembly& assembly, std::size_t arena_bytes, std::size_t constant_bytes) {
  std::string text;
  std::int64_t reorders = 0;
  double saved = 0;
  for (const PlanStep& step : assembly.steps) {
    std::string remark = step.op->attributes();
    if (step.op->name() == "reorder") {
      remark = "because " + step.reason;
    } else if (!step.reason.empty()) {
      remark += (remark.empty() ? "" : ", ") + step.reason;
    }
    if (const double bytes = step.op->saved_bytes(step.input_types); bytes > 0) {
      remark += fmt::format(", {:.1f} KiB less than in two passes", bytes / 1024);
      saved += bytes;
    }
    reorders += step.op->name() == "reorder" ? 1 : 0;
    text += fmt::format("{:<32} {:<24} {:<12} {:>9.3f} MFLOP {:>9.1f} KiB  {} -> {}{}\n", step.path, step.op->name(),
                        step.offer.implementation, step.flops * 1e-6,
                        static_cast<double>(bytes_of(assembly, step)) / 1024, forms(assembly, step.inputs),
                        forms(assembly, step.outputs), remark.empty() ? "" : "  (" + remark + ")");
  }
  if (saved > 0) text += fmt::format("fusion with norms saves {:.1f} MiB of reads and writes\n", saved / 1048576);
  return text + fmt::format("{} steps, {} of them reorders, {:.3f} GFLOP, arena {:.1f} MiB, constants {:.1f} MiB\n",
                            assembly.steps.size(), reorders, flops_of(assembly) * 1e-9, mebibytes(arena_bytes),
                            mebibytes(constant_bytes));
}

std::string operations(const Assembly& assembly) {
  std::string text;
  for (const PlanStep& step : assembly.steps) {
    if (step.op->name() == "reorder") continue;
    text += fmt::format("{} {} {}", step.path, step.op->name(), step.op->attributes());
    for (const Type& type : step.output_types) text += fmt::format(" {}", type.shape.str());
    text += '\n';
  }
  return text;
}

}  // namespace lockstep::plan
