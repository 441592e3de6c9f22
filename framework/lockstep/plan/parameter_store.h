// Where a model's parameters live. Each has one persistent form: value, gradient and optimizer state in the same
// element order and padding, which the first plan fixes. Parameters with a gradient lie one after the other in buckets,
// in the order in which backward finishes them; what kernels want in another layout or type is a derived copy, written
// by whoever changes the values.
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

// Flat memory of one unit of reduction and update. `gradients` holds K slots: one normally, with shards the open
// partial sums of the reduction tree; slot 0 becomes the sum over all ranks, or this rank's part of it. `states` are
// the optimizer's.
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
  // Where buckets and the copies derived by the first plan lie; outlives the store. Null: the store's own heap.
  ParameterMemory* memory = nullptr;
  // Optimizer state lies in pages of this rank that become memory when they are written: for owners of a part.
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

  // Fixes the persistent form and fills in initial values; once, by the first plan. `gradient_order` empty: inference
  // only. Where it throws, nothing is fixed.
  void allocate(const std::map<const Parameter*, Layout>& layouts, const std::vector<const Parameter*>& gradient_order);
  bool allocated() const { return allocated_; }

  DType dtype(const Parameter* parameter) const { return parameter->is_integer ? DType::I64 : options_.dtype; }
  const Layout& layout(const Parameter* parameter) const { return record(parameter).layout; }
  void* value(const Parameter* parameter) { return record(parameter).value; }
  bool has_gradient(const Parameter* parameter) const { return record(parameter).bucket >= 0; }
  int bucket_of(const Parameter* parameter) const { return record(parameter).bucket; }
  // This, like what else reads or writes gradients and states, throws Error for a parameter without gradient.
  void* gradient(const Parameter* parameter, int slot) const;
  std::vector<Bucket>& buckets() { return buckets_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  // Of all buckets: they lie one after the other, and so do their slots.
  std::size_t bucket_bytes() const { return bucket_bytes_; }
  LazyPages& owned_states() { return states_; }  // with states_by_owner

  // A copy of the parameter in another form; the same form gives the same copy. Its padding is zero. It has memory, and
  // the values, after make_copies().
  int derive(const Parameter* parameter, const Layout& layout, DType dtype);
  void make_copies() { copies_.allocate(); }
  void* derived(int id) { return copies_.data(id); }
  // Carry changed values over to the copies: of all parameters, on several threads; of one; of elements `range` of a
  // bucket, which any thread may do while others do the same for other ranges.
  void refresh();
  void refresh(const Parameter* parameter);
  void refresh(const Bucket& bucket, Range range);
  // Copies that this rank has for itself beside shared values (a later plan's) are left out by the last one: whoever
  // reads them asks first, and refreshes them once nobody writes values.
  bool own_copies_stale() const { return copies_.own_stale(version_); }
  void refresh_own_copies() { copies_.refresh_own(version_); }
  // Rises with every change of values, from 1; who changes them in place says so.
  std::uint64_t version() const { return version_; }
  void values_changed() { ++version_; }

  // Logical order, by full name.
  bool contains(const std::string& name) const { return by_name_.contains(name); }
  const Parameter* find(const std::string& name) const;
  Tensor read(const std::string& name) const;
  void write(const std::string& name, const Tensor& tensor);  // f32 and f64 convert; call refresh() when done
  Tensor read_gradient(const std::string& name) const;        // slot 0 as it lies there: the caller knows its divisor
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
    AlignedBuffer own = {};  // those without gradient
  };
  Record& record(const Parameter* parameter);
  const Record& record(const Parameter* parameter) const;
  void initialize(const Parameter* parameter);
  Tensor to_tensor(const Parameter* parameter, const void* data) const;
  void from_tensor(const Parameter* parameter, const Tensor& tensor, void* data) const;
  const Bucket& bucket_with(const Parameter* parameter) const;  // throws Error for one without gradient
  std::byte* in_bucket(const Parameter* parameter, std::byte* memory) const;
  void lay_out(const std::map<const Parameter*, Layout>& layouts, const std::vector<const Parameter*>& gradient_order);
  void forget();
  void allocate_buckets();
  void* memory_of(const Parameter* parameter) const;  // throws Error before there is any

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
