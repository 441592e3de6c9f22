#include "lockstep/kernels/onednn/primitive_kernel.h"

#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/kernels/native/elementwise.h"
#include "lockstep/kernels/onednn/library.h"
#include "lockstep/kernels/onednn/memory_layout.h"
#include "lockstep/kernels/onednn/small_work.h"

namespace lockstep::kernels::onednn {
namespace {

struct KernelSettings {
  int residual;  // index of the input that the primitive adds to; -1: none
  bool relu;
  bool serial;  // on one thread
};

class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const dnnl::primitive_desc_base& description, const std::vector<Binding>& bindings,
                  const KernelSettings& settings)
      : settings_(settings),
        name_(description.impl_info_str()),
        primitive_(description.get()),
        workspace_bytes_(description.scratchpad_desc().get_size()) {
    for (const Binding& b : bindings) {
      attach({b.index, b.is_output ? Kind::Output : Kind::Input}, b.argument, b.descriptor);
      if (!b.is_output || b.index != 0) continue;
      output_bytes_ = b.descriptor.get_size();
      output_is_bf16_ = data_type_of(b.descriptor) == dnnl::memory::data_type::bf16;
    }
    if (workspace_bytes_ > 0) attach({0, Kind::Workspace}, DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  void run(const Arguments& a) override {
    const SerialScope scope(settings_.serial);
    if (settings_.residual >= 0) copy_residual(a);
    for (Slot& slot : slots_) {
      void* const handle = pointer(slot, a);
      if (handle == slot.handle) continue;
      slot.memory.set_data_handle(handle);
      slot.handle = handle;
    }
    const dnnl_status_t status = dnnl_primitive_execute(primitive_.get(), stream().get(),
                                                        static_cast<int>(arguments_.size()), arguments_.data());
    check(status == dnnl_success, "onednn", "running {} failed with status {}", name_, static_cast<int>(status));
    if (settings_.relu) relu_in_place(a.outputs[0]);
  }

 private:
  enum class Kind : std::uint8_t { Input, Output, Workspace };
  struct Slot {
    std::size_t index;
    Kind kind;
    dnnl::memory memory = {};
    void* handle = nullptr;
  };

  void attach(Slot slot, int argument, const dnnl::memory::desc& descriptor) {
    slot.memory = dnnl::memory(descriptor, engine(), DNNL_MEMORY_NONE);
    arguments_.push_back({argument, slot.memory.get()});
    slots_.push_back(std::move(slot));
  }

  void copy_residual(const Arguments& a) const {
    const void* const from = a.inputs[settings_.residual];
    if (from != a.outputs[0]) std::memcpy(a.outputs[0], from, output_bytes_);
  }

  // Padding stays 0.
  void relu_in_place(void* values) const {
    const auto apply = [&]<class T>(T* y) { native::relu(static_cast<std::int64_t>(output_bytes_ / sizeof(T)), y, y); };
    if (output_is_bf16_) {
      apply(static_cast<native::Bf16*>(values));
    } else {
      apply(static_cast<float*>(values));
    }
  }

  static void* pointer(const Slot& slot, const Arguments& a) {
    switch (slot.kind) {
      case Kind::Input:
        return const_cast<void*>(a.inputs[slot.index]);  // oneDNN's handles have no const; it only reads this memory
      case Kind::Output:
        return a.outputs[slot.index];
      case Kind::Workspace:
        break;
    }
    return a.workspace;
  }

  KernelSettings settings_;
  bool output_is_bf16_ = false;
  std::size_t output_bytes_ = 0;
  std::string name_;
  dnnl::primitive primitive_;
  std::size_t workspace_bytes_;
  std::vector<Slot> slots_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

// Leaked on purpose: kernels in objects of static lifetime may outlive any static made here.
dnnl::engine& engine() {
  static auto* const instance = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *instance;
}

dnnl::stream& stream() {
  static auto* const instance = new dnnl::stream(engine());
  return *instance;
}

dnnl::primitive_attr attributes(const Epilogue& epilogue) {
  dnnl::post_ops operations;
  if (epilogue.residual) operations.append_sum(1);
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  result.set_post_ops(operations);
  return result;
}

std::optional<KernelOffer> primitive_offer(const KernelRequest& request, const dnnl::primitive_desc_base& primitive,
                                           std::vector<Binding> bindings, const Epilogue& epilogue) {
  KernelOffer offer;
  offer.implementation = primitive.impl_info_str();
  if (offer.implementation.find("ref") != std::string::npos) return std::nullopt;
  offer.inputs.resize(request.inputs.size());
  offer.outputs.resize(request.outputs.size());
  for (const Binding& b : bindings) {
    const Type& type = (b.is_output ? request.outputs : request.inputs)[b.index];
    const auto layout = layout_of(type.shape, b.descriptor);
    if (!layout) return std::nullopt;
    (b.is_output ? offer.outputs : offer.inputs)[b.index] = *layout;
    if (b.is_output || data_type_of(b.descriptor) == data_type(type.dtype)) continue;
    if (offer.input_dtypes.empty()) {
      for (const Type& t : request.inputs) offer.input_dtypes.push_back(t.dtype);
    }
    offer.input_dtypes[b.index] = data_type_of(b.descriptor) == data_type(DType::BF16) ? DType::BF16 : DType::F32;
  }
  if (epilogue.residual) {
    offer.in_place_input = static_cast<int>(request.inputs.size()) - 1;
    offer.inputs.back() = offer.outputs[0];
  }
  const KernelSettings settings{
      .residual = offer.in_place_input, .relu = epilogue.relu, .serial = is_small_work(request)};
  offer.build = [primitive, bindings = std::move(bindings), settings] {
    const SerialScope scope(settings.serial);
    return std::make_unique<PrimitiveKernel>(primitive, bindings, settings);
  };
  return offer;
}

}  // namespace lockstep::kernels::onednn
