#include "lockstep/checkpoint/tensor_match.h"

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/core/error.h"

namespace lockstep::checkpoint {
namespace {

// Returns the reason why the tensor does not fit its destination; empty: it fits.
std::string mismatch(const Destination& to, const io::TensorInfo& tensor) {
  if (tensor.shape != to.owner->shape) {
    return formatted("{} {} instead of {}", to.name, tensor.shape.str(), to.owner->shape.str());
  }
  const bool fits = to.owner->is_integer ? tensor.dtype == DType::I64 : is_floating(tensor.dtype);
  if (fits) return "";
  return formatted("{} of {} instead of {}", to.name, name_of(tensor.dtype),
                   to.owner->is_integer ? "i64" : "f32 or f64");
}

}  // namespace

TensorMatch match_tensors(const std::vector<Destination>& destinations, std::span<const io::TensorInfo> tensors,
                          const std::string& prefix) {
  TensorMatch result;
  LoadReport& report = result.report;
  std::map<std::string, std::size_t> given;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].name.starts_with(prefix)) given[tensors[i].name.substr(prefix.size())] = i;
  }
  std::set<std::pair<const Parameter*, int>> filled;
  std::set<std::string> known;
  for (const Destination& to : destinations) {
    known.insert(to.name);
    const auto found = given.find(to.name);
    if (found == given.end()) continue;
    if (std::string why = mismatch(to, tensors[found->second]); !why.empty()) {
      report.mismatched.push_back(std::move(why));
      continue;
    }
    result.pairs.emplace_back(to, found->second);
    filled.emplace(to.owner, to.state);
    report.loaded.push_back(to.name);
  }
  for (const Destination& to : destinations) {
    if (!given.contains(to.name) && !filled.contains({to.owner, to.state})) report.missing.push_back(to.name);
  }
  for (const io::TensorInfo& tensor : tensors) {
    if (!tensor.name.starts_with(prefix)) continue;
    if (std::string rest = tensor.name.substr(prefix.size()); !known.contains(rest))
      report.unexpected.push_back(std::move(rest));
  }
  return result;
}

void write_tensors(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& source) {
  for (const auto& [to, index] : match.pairs) {
    const Tensor& tensor = source.tensor(index).tensor;
    const bool elsewhere = tensor.empty() && tensor.bytes() > 0;
    elsewhere ? store.values_changed() : to.write(tensor);
  }
}

}  // namespace lockstep::checkpoint
