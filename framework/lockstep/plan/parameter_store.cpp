#include "lockstep/plan/parameter_store.h"

#include <algorithm>
#include <cmath>

#include "lockstep/host/process_memory.h"

namespace lockstep::plan {
namespace {

// Parameters begin at cache lines, so loops over two parameters never share a line, or at larger units.
std::int64_t round_up(std::int64_t elements, const ParameterStoreOptions& options) {
  const auto line = static_cast<std::int64_t>(kAlignment / size_of(options.dtype));
  const std::int64_t unit = std::max(line, options.alignment);
  return (elements + unit - 1) / unit * unit;
}

}  // namespace

ParameterStore::ParameterStore(std::vector<NamedParameter> parameters, ParameterStoreOptions options)
    : parameters_(std::move(parameters)),
      options_(options),
      memory_(options.memory != nullptr ? options.memory : &heap_),
      copies_(*memory_) {
  for (const auto& [name, parameter] : parameters_) {
    check(by_name_.emplace(name, parameter).second, "parameters", "two parameters are named '{}'", name);
    records_.try_emplace(parameter).first->second.name = name;
  }
  // Tied weights have their first name.
  for (std::size_t i = parameters_.size(); i-- > 0;) records_[parameters_[i].parameter].name = parameters_[i].name;
}

ParameterStore::~ParameterStore() = default;

ParameterStore::Record& ParameterStore::record(const Parameter* parameter) {
  const auto found = records_.find(parameter);
  check(found != records_.end(), "parameters", "a parameter of shape {} is not part of the model: register its module",
        parameter->shape.str());
  return found->second;
}

const ParameterStore::Record& ParameterStore::record(const Parameter* parameter) const {
  return const_cast<ParameterStore*>(this)->record(parameter);
}

void ParameterStore::allocate(const std::map<const Parameter*, Layout>& layouts,
                              const std::vector<const Parameter*>& gradient_order) {
  check(!allocated_, "parameters", "the persistent form is fixed already");
  try {
    lay_out(layouts, gradient_order);
    for (const auto& [parameter, r] : records_) initialize(parameter);
  } catch (...) {  // an initializer may throw, and memory run out
    forget();
    throw;
  }
  allocated_ = true;
  host::release_freed_memory();  // drawing initial values takes a multiple of the largest parameter
}

void ParameterStore::lay_out(const std::map<const Parameter*, Layout>& layouts,
                             const std::vector<const Parameter*>& gradient_order) {
  for (const auto& [parameter, layout] : layouts) record(parameter).layout = layout;
  const std::int64_t limit = options_.bucket_bytes / static_cast<std::int64_t>(size_of(options_.dtype));
  for (const Parameter* parameter : gradient_order) {
    Record& r = record(parameter);
    const std::int64_t elements = round_up(r.layout.storage_elements(parameter->shape), options_);
    if (buckets_.empty() || (buckets_.back().elements > 0 && buckets_.back().elements + elements > limit))
      buckets_.emplace_back();
    Bucket& bucket = buckets_.back();
    r.bucket = static_cast<int>(buckets_.size()) - 1;
    r.offset = bucket.elements;
    bucket.entries.push_back({parameter, r.name, r.offset, elements, {}});
    bucket.elements += elements;
  }
  allocate_buckets();
  for (auto& [parameter, r] : records_) {
    if (r.bucket < 0) {
      r.own = allocate_aligned(static_cast<std::size_t>(r.layout.storage_elements(parameter->shape)) *
                               size_of(dtype(parameter)));
      r.value = r.own.get();
    }
  }
}

// Undoes lay_out().
void ParameterStore::forget() {
  buckets_.clear();
  bucket_bytes_ = 0;
  states_ = LazyPages();
  for (auto& [parameter, r] : records_) r = Record{.name = r.name};
}

// One block for each kind of memory; buckets lie one after the other.
void ParameterStore::allocate_buckets() {
  for (const Bucket& b : buckets_) bucket_bytes_ += static_cast<std::size_t>(b.elements) * size_of(options_.dtype);
  const auto states = static_cast<std::size_t>(options_.optimizer_states);
  std::byte* values = memory_->common(bucket_bytes_).data();
  std::byte* gradients = memory_->own(bucket_bytes_ * static_cast<std::size_t>(options_.gradient_slots)).data();
  if (options_.states_by_owner) states_ = LazyPages(bucket_bytes_ * states);
  std::byte* state = options_.states_by_owner ? states_.data() : memory_->common(bucket_bytes_ * states).data();
  std::size_t offset = 0;
  for (Bucket& b : buckets_) {
    b.values = values + offset;
    for (int i = 0; i < options_.gradient_slots; ++i)
      b.gradients.push_back(gradients + static_cast<std::size_t>(i) * bucket_bytes_ + offset);
    for (std::size_t i = 0; i < states; ++i) b.states.push_back(state + i * bucket_bytes_ + offset);
    for (const BucketEntry& e : b.entries) {
      record(e.parameter).value = b.values + static_cast<std::size_t>(e.offset) * size_of(options_.dtype);
    }
    offset += static_cast<std::size_t>(b.elements) * size_of(options_.dtype);
  }
}

void ParameterStore::initialize(const Parameter* parameter) {
  Record& r = record(parameter);
  if (r.bucket >= 0 && !memory_->fills_common()) return;
  Tensor drawn(parameter->shape, DType::F64);
  const std::span<double> values = drawn.data<double>();
  RandomStream random(options_.seed, hash_name(r.name));
  parameter->initialize(parameter->shape, values, random);
  if (parameter->is_integer) {
    Tensor tensor(parameter->shape, DType::I64);
    std::ranges::transform(values, tensor.data<std::int64_t>().begin(), [](double v) { return std::llround(v); });
    from_tensor(parameter, tensor, r.value);
  } else {
    from_tensor(parameter, drawn, r.value);
  }
}

const Bucket& ParameterStore::bucket_with(const Parameter* parameter) const {
  const Record& r = record(parameter);
  check(r.bucket >= 0, "parameters",
        "'{}' has no gradient: it is frozen, a buffer, or this model was compiled for inference", r.name);
  return buckets_[static_cast<std::size_t>(r.bucket)];
}

std::byte* ParameterStore::in_bucket(const Parameter* parameter, std::byte* memory) const {
  return memory + static_cast<std::size_t>(record(parameter).offset) * size_of(options_.dtype);
}

void* ParameterStore::gradient(const Parameter* parameter, int slot) const {
  return in_bucket(parameter, bucket_with(parameter).gradients[static_cast<std::size_t>(slot)]);
}

int ParameterStore::derive(const Parameter* parameter, const Layout& layout, DType dtype) {
  if (const int known = copies_.find(parameter, layout, dtype); known >= 0) return known;
  const Record& r = record(parameter);
  const int id = copies_.add({.parameter = parameter,
                              .dtype = this->dtype(parameter),
                              .layout = r.layout,
                              .value = memory_of(parameter),
                              .in_bucket = r.bucket >= 0},
                             layout, dtype);
  if (r.bucket >= 0) {
    auto& entries = buckets_[static_cast<std::size_t>(r.bucket)].entries;
    std::ranges::find(entries, parameter, &BucketEntry::parameter)->derived.push_back(static_cast<std::size_t>(id));
  }
  return id;
}

void ParameterStore::refresh() {
  copies_.refresh();
  copies_.own_are_of(++version_);
}

void ParameterStore::refresh(const Parameter* parameter) {
  ++version_;
  copies_.refresh(parameter);
}

void ParameterStore::refresh(const Bucket& bucket, Range range) {
  const auto ends_before = [&](const BucketEntry& e) { return e.offset + e.elements <= range.begin; };
  for (auto e = std::ranges::partition_point(bucket.entries, ends_before);
       e != bucket.entries.end() && e->offset < range.end; ++e) {
    for (std::size_t id : e->derived) copies_.refresh(id, {range.begin - e->offset, range.end - e->offset});
  }
}

const Parameter* ParameterStore::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  check(found != by_name_.end(), "parameters", "the model has no parameter '{}'", name);
  return found->second;
}

void* ParameterStore::memory_of(const Parameter* parameter) const {
  const Record& r = record(parameter);
  check(allocated_, "parameters", "'{}' has no memory yet: compile a plan of the model first", r.name);
  return r.value;
}

Tensor ParameterStore::to_tensor(const Parameter* parameter, const void* data) const {
  Tensor tensor(parameter->shape, dtype(parameter));
  if (tensor.elements() > 0)
    reorder(parameter->shape, dtype(parameter), record(parameter).layout, data, {}, tensor.raw());
  return tensor;
}

void ParameterStore::from_tensor(const Parameter* parameter, const Tensor& tensor, void* data) const {
  check(tensor.shape() == parameter->shape, "parameters", "'{}' has shape {}, the model expects {}",
        record(parameter).name, tensor.shape().str(), parameter->shape.str());
  check(parameter->is_integer == (tensor.dtype() == DType::I64), "parameters", "'{}' is {}, the model expects {}",
        record(parameter).name, name_of(tensor.dtype()), name_of(dtype(parameter)));
  if (tensor.elements() == 0) return;
  const Tensor converted = tensor.to(dtype(parameter));
  reorder(parameter->shape, dtype(parameter), {}, converted.raw(), record(parameter).layout, data);
}

Tensor ParameterStore::read(const std::string& name) const {
  const Parameter* parameter = find(name);
  return to_tensor(parameter, memory_of(parameter));
}

void ParameterStore::write(const std::string& name, const Tensor& tensor) {
  const Parameter* parameter = find(name);
  void* const memory = memory_of(parameter);
  if (record(parameter).bucket < 0 || memory_->fills_common()) from_tensor(parameter, tensor, memory);
  ++version_;
}

Tensor ParameterStore::read_gradient(const std::string& name) const {
  const Parameter* parameter = find(name);
  return to_tensor(parameter, gradient(parameter, 0));
}

Tensor ParameterStore::read_state(const std::string& name, int state) const {
  const Parameter* parameter = find(name);
  const Bucket& bucket = bucket_with(parameter);
  return to_tensor(parameter, in_bucket(parameter, bucket.states[static_cast<std::size_t>(state)]));
}

void ParameterStore::write_state(const std::string& name, int state, const Tensor& tensor) {
  const Parameter* parameter = find(name);
  const Bucket& bucket = bucket_with(parameter);
  ++version_;  // an intended change: recorded checksums are invalid now
  if (!options_.states_by_owner && !memory_->fills_common()) return;
  from_tensor(parameter, tensor, in_bucket(parameter, bucket.states[static_cast<std::size_t>(state)]));
}

std::size_t ParameterStore::bytes() const {
  std::size_t total = copies_.bytes();
  for (const auto& [parameter, r] : records_) {
    if (r.bucket < 0)
      total += static_cast<std::size_t>(r.layout.storage_elements(parameter->shape)) * size_of(dtype(parameter));
  }
  for (const Bucket& b : buckets_) {
    total +=
        static_cast<std::size_t>(b.elements) * size_of(options_.dtype) * (1 + b.gradients.size() + b.states.size());
  }
  return total;
}

}  // namespace lockstep::plan
