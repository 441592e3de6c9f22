#include "lockstep/onnx/c/c_source.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <system_error>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/onnx/c/c_helpers.h"
#include "lockstep/onnx/c/c_names.h"
#include "lockstep/onnx/c/c_text.h"
#include "lockstep/onnx/c/c_writer.h"
#include "lockstep/onnx/import/imported_model.h"
#include "lockstep/onnx/wire.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/plan/arena.h"
#include "lockstep/plan/fusion.h"

namespace lockstep::onnx {
namespace {

constexpr std::array kCWriters{&write_c_pointwise, &write_c_windows, &write_c_products, &write_c_norms, &write_c_moves};

// The graph of one sample, with joined pointwise nodes.
struct OneSample {
  std::unique_ptr<Graph> graph;
  Value output;
};

OneSample trace_one(const ImportedModel& model, const std::vector<CInput>& inputs, DType dtype) {
  Graph graph(Mode::Eval, dtype);
  std::vector<Value> values;
  values.reserve(inputs.size());
  for (const CInput& input : inputs)
    values.push_back(graph.input(input.name, {input.sample.batched(1), input.is_whole ? DType::I32 : dtype}));
  plan::Traced traced{.prediction = model(values).front()};
  std::vector<plan::ParameterGradient> none;
  int forward_nodes = static_cast<int>(graph.nodes().size());
  const plan::GraphRoots roots{.traced = traced, .gradients = none, .forward_nodes = forward_nodes};
  OneSample one{.graph = plan::fuse_pointwise(graph, roots)};
  one.output = traced.prediction;
  check(one.output.shape().rank() > 0 && one.output.shape()[0] == 1, kSite,
        "the output of one sample has the shape {}, expected the samples as first dimension", one.output.shape().str());
  return one;
}

std::vector<CInput> inputs_of(const ImportedModel& model) {
  std::vector<CInput> inputs;
  for (const FileValue& value : model.graph().inputs()) {
    check(!value.dims.empty() && std::ranges::find(value.dims.begin() + 1, value.dims.end(), -1) == value.dims.end(),
          kSite, "the input {} leaves sizes open, expected all but the number of samples", value.name);
    const bool whole = value.type == 6 || value.type == 7;
    check(whole || value.type == 1 || value.type == 11, kSite,
          "the input {} has the type {}, expected f32, f64 or whole "
          "numbers",
          value.name, value.type);
    inputs.push_back({.name = value.name,
                      .sample = Shape(std::vector<std::int64_t>(value.dims.begin() + 1, value.dims.end())),
                      .is_whole = whole});
  }
  std::set<std::string> names;
  for (const CInput& input : inputs) {
    check(names.insert(c_upper(c_name_of_input(input.name))).second, kSite,
          "two inputs, one of them {}, have the name {} in C, or one that differs in capital letters alone; expected "
          "names that differ in letters, digits or _",
          input.name, c_name_of_input(input.name));
  }
  return inputs;
}

// Writes the nodes, and decides where values lie.
class Generator {
 public:
  Generator(const OneSample& one, std::vector<CInput> inputs) : graph_(*one.graph), output_(one.output) {
    parts_.inputs = std::move(inputs);
    parts_.dtype = graph_.dtype();
  }

  CParts run() {
    find_uses();
    find_varying();
    place_values();
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (needed_[i]) write(static_cast<int>(i));
    }
    parts_.output = output_.shape().tail();
    body_.set_once(false);
    body_.add(formatted("memcpy(output, {}, {} * sizeof(real));", place_of(output_), output_.shape().elements()));
    parts_.body = body_.text();
    parts_.once = body_.once_text();
    parts_.tables = body_.tables();
    parts_.helpers = c_helpers(body_.helpers());
    parts_.scratch = body_.scratch();
    // Statements and tables have what is computed, and no weights: these are read by their places.
    for (const CInput& input : parts_.inputs) parts_.structure += input.sample.str();
    parts_.structure += parts_.output.str() + parts_.once + parts_.body + parts_.tables;
    return std::move(parts_);
  }

 private:
  using Key = std::pair<int, int>;  // node, output

  // Values that are other views of the memory of a value.
  static bool is_view(const Node& node) {
    return dynamic_cast<const ReshapeOp*>(node.op.get()) != nullptr ||
           dynamic_cast<const CastOp*>(node.op.get()) != nullptr;
  }
  Key root(Value value) const {
    const Node& node = graph_.node(value);
    if (node.kind == Node::Kind::Op && is_view(node)) return root(node.inputs[0]);
    return {value.node(), value.index()};
  }

  void find_uses() {
    needed_.resize(graph_.nodes().size());
    needed_[static_cast<std::size_t>(output_.node())] = true;
    const int end = static_cast<int>(needed_.size());
    last_[root(output_)] = end;
    for (int i = end; i-- > 0;) {
      if (!needed_[static_cast<std::size_t>(i)]) continue;
      last_.try_emplace({i, 0}, i);  // written, also if it is not read
      for (const Value input : graph_.nodes()[static_cast<std::size_t>(i)].inputs) {
        needed_[static_cast<std::size_t>(input.node())] = true;
        int& last = last_.try_emplace(root(input), i).first->second;
        last = std::max(last, i);
      }
    }
  }

  // Whether each node depends on an input.
  void find_varying() {
    for (const Node& node : graph_.nodes()) {
      bool varies = node.kind == Node::Kind::Input;
      for (const Value input : node.inputs) varies = varies || varying_[static_cast<std::size_t>(input.node())];
      varying_.push_back(varies);
    }
  }

  void place_values() {
    std::vector<plan::Lifetime*> pointers;
    for (const auto& [key, last] : last_) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(key.first)];
      if (node.kind != Node::Kind::Op || is_view(node)) continue;
      const Type& type = node.outputs[static_cast<std::size_t>(key.second)];
      const auto bytes = static_cast<std::size_t>(type.shape.elements()) * size_of(type.dtype);
      plan::Lifetime& lifetime = lifetimes_[key];
      lifetime = {.bytes = whole_lines(std::max<std::size_t>(bytes, 1)), .first = key.first, .last = last};
      if (varying_[static_cast<std::size_t>(key.first)]) {
        pointers.push_back(&lifetime);
      } else {
        lifetime.offset = static_cast<std::size_t>(parts_.fixed);
        parts_.fixed += static_cast<std::int64_t>(lifetime.bytes);
      }
    }
    parts_.arena = static_cast<std::int64_t>(plan::assign_offsets(pointers));
  }

  std::string place_of(Value value) {
    const Key key = root(value);
    const Node& node = graph_.nodes()[static_cast<std::size_t>(key.first)];
    if (node.kind == Node::Kind::Input) return c_argument_of_input(node.path);
    if (node.kind == Node::Kind::Parameter) return formatted("(weights + {})", offset_of(*node.parameter));
    const bool is_real = is_floating(node.outputs[static_cast<std::size_t>(key.second)].dtype);
    return formatted("(({} *)({} + {}))", is_real ? "real" : "int32_t",
                     varying_[static_cast<std::size_t>(key.first)] ? "arena" : "fixed", lifetimes_.at(key).offset);
  }

  // Appends the values of a parameter to the weights when it is read first.
  std::int64_t offset_of(const Parameter& parameter) {
    const auto [entry, is_new] = offsets_.try_emplace(&parameter, parts_.values.size());
    if (is_new) {
      check(!parameter.is_integer, kSite, "a parameter has whole numbers, expected floating ones");
      std::vector<double> values(static_cast<std::size_t>(parameter.shape.elements()));
      RandomStream unused(0, 0);
      parameter.initialize(parameter.shape, values, unused);
      parts_.values.insert(parts_.values.end(), values.begin(), values.end());
      parts_.structure += parameter.shape.str();
    }
    return static_cast<std::int64_t>(entry->second);
  }

  void write(int i) {
    const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
    if (node.kind != Node::Kind::Op || is_view(node)) return;
    body_.set_once(!varying_[static_cast<std::size_t>(i)]);
    CNode c{.body = body_, .graph = graph_, .node = node};
    for (const Value input : node.inputs) {
      c.inputs.push_back(place_of(input));
      c.types.push_back(input.type());
    }
    for (int k = 0; k < static_cast<int>(node.outputs.size()); ++k)
      c.outputs.push_back(last_.contains({i, k}) ? place_of(graph_.value(i, k)) : "");
    for (const auto& write_subject : kCWriters) {
      if (write_subject(c)) return;
    }
    fail(kSite, "{}: the op {} has no form in C here", node.path, node.op->name());
  }

  const Graph& graph_;
  Value output_;
  std::vector<bool> needed_, varying_;
  std::map<Key, int> last_;  // the last node that reads each value
  std::map<Key, plan::Lifetime> lifetimes_;
  std::map<const Parameter*, std::size_t> offsets_;
  CBody body_;
  CParts parts_;
};

}  // namespace

std::filesystem::path onnx_beside(const std::filesystem::path& path, const std::vector<std::string>& sources) {
  require_c_name(path.stem().string());
  std::filesystem::path file = path;
  file.replace_extension(".onnx");
  for (const std::string& source : sources) {
    std::error_code error;  // of a file that is not there
    check(!std::filesystem::equivalent(file, source, error), kSite,
          "{} is read for the model, and its place is that of the model of ONNX that is written beside {}, which would "
          "replace it; expected another name of the C source",
          source, path.string());
  }
  return file;
}

CSource c_source(const std::filesystem::path& file, const std::string& name) {
  require_c_name(name);
  const ImportedModel model(file);
  check(model.graph().outputs().size() == 1, kSite, "{} has {} outputs, expected one", file.string(),
        model.graph().outputs().size());
  const std::vector<CInput> inputs = inputs_of(model);
  const bool wide = std::ranges::any_of(model.graph().inputs(), [](const FileValue& v) { return v.type == 11; });
  const OneSample one = trace_one(model, inputs, wide ? DType::F64 : DType::F32);
  const CParts parts = Generator(one, inputs).run();
  return {.source = c_text(parts, name),
          .header = c_header(parts, name),
          .weights = c_weights(parts),
          .memory = parts.arena + parts.fixed + parts.scratch * static_cast<std::int64_t>(size_of(parts.dtype))};
}

CSource write_c_source(const std::filesystem::path& file, const std::filesystem::path& path) {
  CSource made = c_source(file, path.stem().string());
  const auto write = [&](const char* ending, const std::string& text) {
    std::filesystem::path each = path;
    io::replace_file(each.replace_extension(ending), text, kSite);
  };
  write(".c", made.source);
  write(".h", made.header);
  write(".weights", made.weights);
  return made;
}

}  // namespace lockstep::onnx
