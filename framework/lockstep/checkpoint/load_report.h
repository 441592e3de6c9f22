// The options of a load of weights, and its result.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

struct LoadOptions {
  bool strict = true;  // requires every name with its shape and no other name; false: loads the tensors that fit
  std::vector<std::string> keep = {};  // names of the model's tensors that keep their values, whatever the file has
  std::string prefix = {};  // loads only tensors whose name begins with this, and removes it from the name: "module."
};

// The result of a load: full names, in the order of the model; `unexpected` and `skipped` in the order of the tensors.
// An entry of `mismatched` has both shapes: "fc.weight (1000, 512) instead of (10, 512)". `skipped` are tensors of the
// file that LoadOptions::keep names.
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected, mismatched, skipped;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // Returns one sentence with the first ten names of each kind.
  std::string str() const;
  // Throws Error with `site`, the name of the file and str(), unless the report is complete.
  void require_complete(std::string_view site, const std::string& file = {}) const;
};

}  // namespace lockstep::checkpoint
