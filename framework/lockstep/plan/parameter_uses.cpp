#include "lockstep/plan/parameter_uses.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::plan {

ParameterUses::ParameterUses(const Assembly& assembly, const ParameterStore& store)
    : needs_(assembly.steps.size()), retired_(assembly.steps.size()) {
  std::map<const Parameter*, std::size_t> last_use;
  std::set<int> needed;
  const auto reads = [&](std::size_t s, int buffer) {
    const PlanBuffer& b = assembly.buffers[static_cast<std::size_t>(assembly.root(buffer))];
    if (b.kind != PlanBuffer::Kind::Parameter && b.kind != PlanBuffer::Kind::Derived) return;
    last_use[b.parameter] = s;
    if (const int bucket = store.bucket_of(b.parameter); bucket >= 0 && needed.insert(bucket).second)
      needs_[s].push_back(bucket);
  };
  for (std::size_t s = 0; s < assembly.steps.size(); ++s) {
    if (assembly.steps[s].constant) continue;
    for (int b : assembly.steps[s].inputs) reads(s, b);
  }
  for (std::size_t s = 0; s < assembly.steps.size(); ++s) {
    for (int sink : assembly.steps[s].sinks) {
      const Parameter* parameter = assembly.buffers[static_cast<std::size_t>(sink)].parameter;
      const auto last = last_use.find(parameter);
      retired_[last == last_use.end() ? s : std::max(s, last->second)].push_back(parameter);
    }
  }
}

}  // namespace lockstep::plan
