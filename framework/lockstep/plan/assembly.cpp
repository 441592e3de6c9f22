#include "lockstep/plan/assembly.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/reorder.h"

namespace lockstep::plan {
namespace {

// Copies of weights of this many bytes or more are made anew in each step where their reader has so many FLOPs for each
// byte of them: a 1x1 convolution from 384 positions on. ResNet-50 with a batch of 8 keeps 50 MiB less.
constexpr double kTurnedBytes = 1 << 19, kTurnedFlops = 192;

class Assembler {
 public:
  explicit Assembler(const AssemblyRequest& request)
      : request_(request), graph_(request.graph), primary_(graph_.nodes().size()), copies_() {}

  Assembly run() {
    const std::vector<bool> live = live_nodes();
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (live[i]) add(graph_.nodes()[i], primary_[i]);
    }
    for (const ParameterGradient& g : request_.gradients) {
      if (g.parameter == nullptr) continue;
      out_.natural_layouts[g.parameter] = out_.buffers[static_cast<std::size_t>(primary(g.value))].layout;
    }
    const std::vector<int> uses = count_uses();
    for (const ParameterGradient& g : request_.gradients) {
      if (g.parameter != nullptr) sink(g, uses[static_cast<std::size_t>(primary(g.value))] > 1);
    }
    for (Value v : request_.outputs) {
      const int b = primary(v);
      out_.buffers[static_cast<std::size_t>(out_.root(b))].keep = true;
      out_.outputs.push_back(b);
    }
    find_constants();
    return std::move(out_);
  }

 private:
  struct Form {
    Layout layout;
    DType dtype;
  };
  struct Wish {  // a request for another form: the module path, the reason, and the work of the step that asks
    std::string path, reason;
    double flops = 0;
  };

  std::vector<bool> live_nodes() const {
    std::vector<bool> live(graph_.nodes().size(), false);
    for (Value v : request_.outputs) live[static_cast<std::size_t>(v.node())] = true;
    for (const auto& g : request_.gradients) live[static_cast<std::size_t>(g.value.node())] = true;
    for (std::size_t i = live.size(); i-- > 0;) {
      if (!live[i]) continue;
      for (Value v : graph_.nodes()[i].inputs) live[static_cast<std::size_t>(v.node())] = true;
    }
    return live;
  }

  int primary(Value v) const {
    return primary_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())];
  }
  PlanBuffer& buffer(int b) { return out_.buffers[static_cast<std::size_t>(b)]; }

  int new_buffer(PlanBuffer b) {
    out_.buffers.push_back(std::move(b));
    copies_.emplace_back();
    return static_cast<int>(out_.buffers.size()) - 1;
  }

  void add(const Node& node, std::vector<int>& outputs) {
    switch (node.kind) {
      case Node::Kind::Input:
        outputs = {new_buffer({.type = node.outputs[0]})};
        out_.inputs[node.path] = outputs[0];
        return;
      case Node::Kind::Parameter:
        outputs = {new_buffer({.kind = PlanBuffer::Kind::Parameter,
                               .type = node.outputs[0],
                               .layout = request_.layout_of(node.parameter),
                               .parameter = node.parameter})};
        return;
      case Node::Kind::Op:
        break;
    }
    if (node.op->is_view()) {
      const Form plain{{}, node.outputs[0].dtype};
      const int source = in_form(primary(node.inputs[0]), plain,
                                 {node.path, fmt::format("{} is a view, of plain memory", node.op->name())});
      PlanBuffer view = buffer(source);
      view.type = node.outputs[0];
      view.alias = source;
      outputs = {new_buffer(std::move(view))};
      return;
    }
    PlanStep step;
    step.path = node.path;
    step.reason = node.remark;
    step.op = node.op;
    for (Value v : node.inputs) step.inputs.push_back(primary(v));
    outputs = emit(std::move(step), node.outputs);
  }

  // Chooses the kernel for a step by the present forms of its inputs, inserts the reorders that the kernel needs, and
  // makes the output buffers.
  std::vector<int> emit(PlanStep step, const std::vector<Type>& output_types) {
    std::vector<Layout> offered;
    for (int b : step.inputs) {
      step.input_types.push_back(buffer(b).type);
      offered.push_back(buffer(b).layout);
    }
    step.output_types = output_types;
    choose_kernel(step, offered);
    step.flops = step.op->flops(step.input_types, step.output_types);
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      const PlanBuffer& source = buffer(step.inputs[k]);
      if (source.kind == PlanBuffer::Kind::Parameter && source.alias < 0) {
        out_.natural_layouts.try_emplace(source.parameter, step.offer.inputs[k]);
      }
      const Form wanted{step.offer.inputs[k], step.input_types[k].dtype};
      step.inputs[k] = in_form(step.inputs[k], wanted,
                               {step.path,
                                fmt::format("{} ({}) reads input {} as {} {}", step.op->name(),
                                            step.offer.implementation, k, name_of(wanted.dtype), wanted.layout.str()),
                                step.flops});
    }
    std::vector<int> outputs;
    for (std::size_t k = 0; k < output_types.size(); ++k) {
      outputs.push_back(new_buffer({.type = step.output_types[k], .layout = step.offer.outputs[k]}));
    }
    step.outputs = outputs;
    const Wish wish{step.path, fmt::format("{} ({}) writes {}", step.op->name(), step.offer.implementation,
                                           name_of(buffer(outputs[0]).type.dtype))};
    out_.steps.push_back(std::move(step));
    for (std::size_t k = 0; k < outputs.size(); ++k) {  // computed in f32 where the graph has bf16
      const Form wanted{buffer(outputs[k]).layout, output_types[k].dtype};
      outputs[k] = in_form(outputs[k], wanted, wish);
    }
    return outputs;
  }

  std::vector<std::string> fields_of(const PlanStep& step) const {
    std::vector<std::string> fields;
    for (std::size_t k = 0; k < step.inputs.size(); ++k) fields.push_back(out_.field(step, k));
    return fields;
  }

  // Sets the offer of the step, and its types to those that the kernel reads and writes. An op without a bf16 kernel is
  // computed in f32.
  void choose_kernel(PlanStep& step, const std::vector<Layout>& offered) const {
    kernels::KernelRequest request{step.op.get(), step.input_types, step.output_types,
                                   step.path,     request_.options, fields_of(step)};
    auto offers = kernels::kernel_registry().offers(request, offered);
    if (offers.empty() && request.has_bf16()) {
      for (auto* types : {&request.inputs, &request.outputs}) {
        for (Type& type : *types) {
          if (type.dtype == DType::BF16) type.dtype = DType::F32;
        }
      }
      offers = kernels::kernel_registry().offers(request, offered);
    }
    if (offers.empty()) kernels::fail_without_kernel(request);
    const std::size_t choice = offers.size() > 1 && request_.choose ? request_.choose(request, offers) : 0;
    step.offer = std::move(offers[choice]);
    step.input_types = std::move(request.inputs);
    step.output_types = std::move(request.outputs);
    for (std::size_t k = 0; k < step.offer.input_dtypes.size(); ++k)
      step.input_types[k].dtype = step.offer.input_dtypes[k];
  }

  int emit_reorder(int source, const Form& form, const Wish& wish) {
    PlanStep step;
    step.path = wish.path;
    step.reason = wish.reason;
    step.op = std::make_shared<ReorderOp>(form.layout, form.dtype);
    step.inputs = {source};
    return emit(std::move(step), {{buffer(source).type.shape, form.dtype}})[0];
  }

  // Whether a step that trains turns weights anew, rather than keep a copy of them. That is where the layout alone
  // differs, and the first plan would keep a large copy whose making takes little time beside the work of its reader,
  // or a later plan finds no copy: its own would have to be made anew, too, before each step.
  bool is_turned_anew(const PlanBuffer& weights, const Form& form, double flops) const {
    const auto is_of_it = [&](const ParameterGradient& g) { return g.parameter == weights.parameter; };
    if (weights.type.dtype != form.dtype || std::ranges::none_of(request_.gradients, is_of_it)) return false;
    if (request_.has_copy) return !request_.has_copy(weights.parameter, form.layout, form.dtype);
    const auto bytes = static_cast<double>(form.layout.storage_elements(weights.type.shape)) *
                       static_cast<double>(size_of(form.dtype));
    return bytes >= kTurnedBytes && flops >= kTurnedFlops * bytes;
  }

  // Returns the buffer itself or its copy in the requested form: a derived copy of a parameter, or the output of one
  // reorder for any other value; weights that are turned anew have one for each reader.
  int in_form(int source, const Form& form, const Wish& wish) {
    const auto fits = [&](int b) { return buffer(b).layout == form.layout && buffer(b).type.dtype == form.dtype; };
    if (fits(source)) return source;
    for (int copy : copies_[static_cast<std::size_t>(source)]) {
      if (fits(copy)) return copy;
    }
    int copy = -1;
    if (buffer(source).kind == PlanBuffer::Kind::Parameter && buffer(source).alias < 0) {
      if (is_turned_anew(buffer(source), form, wish.flops)) {
        copy = emit_reorder(source, form, wish);
        out_.steps.back().anew = true;
        return copy;
      }
      PlanBuffer derived = buffer(source);
      derived.kind = PlanBuffer::Kind::Derived;
      derived.layout = form.layout;
      derived.type.dtype = form.dtype;
      copy = new_buffer(std::move(derived));
    } else {
      copy = emit_reorder(source, form, wish);
    }
    copies_[static_cast<std::size_t>(source)].push_back(copy);
    return copy;
  }

  // By buffer: the number of steps, views, gradients and outputs that read it.
  std::vector<int> count_uses() const {
    std::vector<int> uses(out_.buffers.size());
    const auto use = [&](int b) { ++uses[static_cast<std::size_t>(b)]; };
    for (const PlanStep& step : out_.steps) std::ranges::for_each(step.inputs, use);
    for (const PlanBuffer& b : out_.buffers) {
      if (b.alias >= 0) use(b.alias);
    }
    for (const ParameterGradient& g : request_.gradients) use(primary(g.value));
    for (Value v : request_.outputs) use(primary(v));
    return uses;
  }

  // Makes a kernel write the gradient of a parameter directly into its slot. After that the slot belongs to the
  // reduction. So if the value has another use (a view, another layout, other readers), a copy is written to the slot.
  void sink(const ParameterGradient& g, bool read_by_others) {
    const Layout form = request_.layout_of(g.parameter);
    int b = primary(g.value);
    const PlanBuffer& made = buffer(b);
    if (read_by_others || made.kind != PlanBuffer::Kind::Arena || made.alias >= 0 || made.layout != form ||
        producer(b) < 0) {
      const int made_by = producer(out_.root(b));
      b = emit_reorder(b, {form, made.type.dtype},
                       {graph_.nodes()[static_cast<std::size_t>(g.value.node())].path,
                        read_by_others ? "others read this gradient of a parameter, too"
                                       : "the gradient of a parameter takes its persistent form"});
      // Directly after the step that made the value, so that its bucket need not wait for the end of backward.
      std::rotate(out_.steps.begin() + made_by + 1, out_.steps.end() - 1, out_.steps.end());
    }
    buffer(b).kind = PlanBuffer::Kind::Gradient;
    buffer(b).parameter = g.parameter;
    out_.steps[static_cast<std::size_t>(producer(b))].sinks.push_back(b);
  }

  // Marks steps that read only parameters and other constants: folded weights, fills.
  void find_constants() {
    const auto is_constant = [&](int b) {
      const PlanBuffer::Kind kind = buffer(out_.root(b)).kind;
      return kind == PlanBuffer::Kind::Parameter || kind == PlanBuffer::Kind::Derived ||
             kind == PlanBuffer::Kind::Constant;
    };
    for (PlanStep& step : out_.steps) {
      const auto is_plain = [&](int b) { return buffer(b).kind == PlanBuffer::Kind::Arena; };
      step.constant =
          !step.anew && std::ranges::all_of(step.inputs, is_constant) && std::ranges::all_of(step.outputs, is_plain);
      if (!step.constant) continue;
      for (int b : step.outputs) buffer(b).kind = PlanBuffer::Kind::Constant;
    }
  }

  int producer(int b) const {
    for (std::size_t s = out_.steps.size(); s-- > 0;) {
      if (std::ranges::find(out_.steps[s].outputs, b) != out_.steps[s].outputs.end()) return static_cast<int>(s);
    }
    return -1;
  }

  const AssemblyRequest& request_;
  const Graph& graph_;
  Assembly out_;
  std::vector<std::vector<int>> primary_;  // by node and output
  std::vector<std::vector<int>> copies_;   // by buffer
};

}  // namespace

std::string Assembly::field(const PlanStep& step, std::size_t input) const {
  for (const auto& [name, buffer] : inputs) {
    if (root(step.inputs[input]) == buffer) return name;
  }
  return "";
}

Assembly assemble(const AssemblyRequest& request) { return Assembler(request).run(); }

}  // namespace lockstep::plan
