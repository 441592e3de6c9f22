// The storage of a model's parameters. Each parameter has one persistent form: value, gradient and optimizer state have
// the same order of elements and the same padding, which the first plan fixes. Parameters with a gradient lie one after
// the other in buckets, in the order in which backward finishes them. A kernel that reads another layout or type gets a
// derived copy; the code that changes values refreshes the copies. One thread, unless a function says otherwise.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/graph/parameter.h"
#include "lockstep/plan/derived_copies.h"
#include "lockstep/plan/parameter_memory.h"

namespace lockstep::plan {

struct BucketEntry {
  const Parameter* parameter;
  std::string name;
  std::int64_t offset, elements;     // within the bucket, padding included
  std::vector<std::size_t> derived;  // its derived copies
};

// Flat memory of one unit of reduction and update. `gradients` has one slot per open partial sum of the reduction tree;
// slot 0 becomes the sum over all ranks, or this rank's part of it. `states` are those of the optimizer.
struct Bucket {
  std::vector<BucketEntry> entries;
  std::int64_t elements = 0;
  std::byte* values = nullptr;
  std::vector<std::byte*> gradients = {}, states = {};
};

struct ParameterStoreOptions {
  DType dtype = DType::F32;
  std::uint64_t seed = 0;
  int gradient_slots = 1;
  int optimizer_states = 0;
  std::int64_t bucket_bytes = 8 << 20;
  // In elements: parameters begin at multiples of it within a bucket; 0: at cache lines.
  std::int64_t alignment = 0;
  // The memory of buckets and of the copies derived by the first plan; it outlives the store. Null: the store's own
  // heap.
  ParameterMemory* memory = nullptr;
  // Optimizer state lies in LazyPages of this rank, for a rank that owns a part of it.
  bool states_by_owner = false;
};

class ParameterStore {
 public:
  ParameterStore(std::vector<NamedParameter> parameters, ParameterStoreOptions options);
  ~ParameterStore();

  const ParameterStoreOptions& options() const { return options_; }
  ParameterMemory& memory() { return *memory_; }
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  const std::string& name(const Parameter* parameter) const { return record(parameter).name; }

  // Fixes the persistent form and writes initial values; the first plan calls it once. An empty `gradient_order` means
  // inference only. If it throws, nothing is fixed.
  void allocate(const std::map<const Parameter*, Layout>& layouts, const std::vector<const Parameter*>& gradient_order);
  bool allocated() const { return allocated_; }

  DType dtype(const Parameter* parameter) const { return parameter->is_integer ? DType::I64 : options_.dtype; }
  const Layout& layout(const Parameter* parameter) const { return record(parameter).layout; }
  void* value(const Parameter* parameter) { return record(parameter).value; }
  bool has_gradient(const Parameter* parameter) const { return record(parameter).bucket >= 0; }
  int bucket_of(const Parameter* parameter) const { return record(parameter).bucket; }
  // This and the other functions for gradients and states throw Error for a parameter without gradient.
  void* gradient(const Parameter* parameter, int slot) const;
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Bytes of all buckets. Buckets lie one after the other, and so do their slots.
  std::size_t bucket_bytes() const { return bucket_bytes_; }
  LazyPages& owned_states() { return states_; }  // with states_by_owner

  // Returns the number of the parameter's copy in another form; the same form gives the same copy. Its padding is zero.
  // A copy has memory and values after make_copies().
  int derive(const Parameter* parameter, const Layout& layout, DType dtype);
  bool has_copy(const Parameter* parameter, const Layout& layout, DType dtype) const {
    return copies_.find(parameter, layout, dtype) >= 0;
  }
  void make_copies() { copies_.allocate(); }
  void* derived(int id) { return copies_.data(id); }
  // These write changed values to the copies: of all parameters, on several threads; of one parameter; of elements
  // `range` of a bucket. Any thread may call the last one while others do so for other ranges.
  void refresh();
  void refresh(const Parameter* parameter);
  void refresh(const Bucket& bucket, Range range);
  // The last one leaves out private copies (of later plans). Before a plan reads them it asks whether they are stale,
  // and refreshes them while no rank writes values.
  bool own_copies_stale() const { return copies_.own_stale(version_); }
  void refresh_own_copies() { copies_.refresh_own(version_); }
  // Counts the changes of values, from 1. Code that changes values in place calls values_changed().
  std::uint64_t version() const { return version_; }
  void values_changed() { ++version_; }

  // Access by full name; tensors are in logical order.
  bool contains(const std::string& name) const { return by_name_.contains(name); }
  const Parameter* find(const std::string& name) const;
  Tensor read(const std::string& name) const;
  void write(const std::string& name, const Tensor& tensor);  // converts between f32 and f64; call refresh() afterwards
  Tensor read_gradient(const std::string& name) const;        // slot 0, not divided by the weight
  Tensor read_state(const std::string& name, int state) const;
  void write_state(const std::string& name, int state, const Tensor& tensor);
  std::size_t bytes() const;  // values, gradients, states and derived copies

 private:
  struct Record {
    std::string name;
    Layout layout;
    void* value = nullptr;
    int bucket = -1;
    std::int64_t offset = 0;
    AlignedBuffer own = {};  // of a parameter without gradient
  };
  Record& record(const Parameter* parameter);
  const Record& record(const Parameter* parameter) const;
  void initialize(const Parameter* parameter);
  Tensor to_tensor(const Parameter* parameter, const void* data) const;
  void from_tensor(const Parameter* parameter, const Tensor& tensor, void* data) const;
  const Bucket& bucket_with(const Parameter* parameter) const;  // throws Error for a parameter without gradient
  std::byte* in_bucket(const Parameter* parameter, std::byte* memory) const;
  void lay_out(const std::map<const Parameter*, Layout>& layouts, const std::vector<const Parameter*>& gradient_order);
  void forget();
  void allocate_buckets();
  void* memory_of(const Parameter* parameter) const;  // throws Error before allocate()

  std::vector<NamedParameter> parameters_;
  ParameterStoreOptions options_;
  std::map<const Parameter*, Record> records_;
  std::map<std::string, const Parameter*> by_name_;
  std::vector<Bucket> buckets_;
  ParameterMemory heap_;
  ParameterMemory* memory_;
  DerivedCopies copies_;
  LazyPages states_;
  std::size_t bucket_bytes_ = 0;  // of all
  bool allocated_ = false;
  std::uint64_t version_ = 1;
};

}  // namespace lockstep::plan
