// A data set that gives the samples of another one, which several views may share, as the parts of a split do: the base
// of sets that change one thing about another set. Any thread may read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

class DatasetView : public Dataset {
 public:
  // Throws Error at `site` if `whole` is null.
  explicit DatasetView(std::shared_ptr<const Dataset> whole, std::string_view site = "view")
      : whole_(std::move(whole)) {
    check(whole_ != nullptr, site, "the data set is null, expected one to read from");
  }

  std::int64_t size() const override { return whole_->size(); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  std::int64_t classes() const override { return whole_->classes(); }
  std::string describe() const override { return whole_->describe(); }
  std::string locate(std::int64_t index) const override { return whole_->locate(index); }
  std::int32_t label(std::int64_t index) const override { return whole_->label(index); }
  std::int64_t origin(std::int64_t index) const override { return whole_->origin(index); }
  bool is_random() const override { return whole_->is_random(); }
  void read(std::int64_t index, std::span<std::byte* const> out) const override { whole_->read(index, out); }
  void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const override {
    whole_->read_random(index, key, out);
  }

 protected:
  const Dataset& whole() const { return *whole_; }

 private:
  std::shared_ptr<const Dataset> whole_;
};

}  // namespace lockstep::data
