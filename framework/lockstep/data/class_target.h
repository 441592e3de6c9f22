// Targets that are classes: integers from 0 on, one per sample or one per position, as class indices for a loss; and
// how often each class is there. Targets that are flags: numbers from 0 to 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/transforms.h"

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::data {

struct ClassTargetOptions {
  std::string field{};               // of integers, or of numbers that are whole
  std::int64_t classes = 0;          // at least 1
  std::int32_t ignore_index = -100;  // of positions without a class
};

// Renames the field to "target", of I32 and the same shape, but without a leading dimension of one channel: (1, 8, 8)
// and (8, 8) become (8, 8), (1) and () become (). Copies other fields. Immutable: any thread may call it.
class ClassTarget : public Transform {
 public:
  // Throws Error for fewer than 1 class. `spatial_axes` is the number of spatial dimensions of a sample.
  ClassTarget(ClassTargetOptions options, int spatial_axes);

  std::vector<Field> fields(const std::vector<Field>& in) const override;
  // Throws Error, with sample and element, for an element that is neither a class nor the ignored index.
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  ClassTargetOptions options_;
  int spatial_axes_;
};

// Reads the field of all samples and returns how often each class is there, in positions: as many numbers as the
// largest class, or `classes` if that is more than 0. Each rank of `comm` reads a part; null: this process reads all.
// Collective; throws AgreedError for a class beyond `classes`, one that is negative and not the ignored index, and more
// than 65536 classes.
std::vector<std::int64_t> count_classes(const Dataset& dataset, const std::string& field, std::int64_t classes,
                                        std::int32_t ignore_index, const comm::Communicator* comm);

// Reads the field of all samples, targets that are flags. Each rank of `comm` reads a part; null: this process reads
// all. Collective; throws AgreedError, with sample and element, for a value that is not from 0 to 1.
void check_flags(const Dataset& dataset, const std::string& field, const comm::Communicator* comm);

}  // namespace lockstep::data
