#include "lockstep/onnx/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/onnx/node_writer.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/recurrent.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/table.h"

namespace lockstep::onnx {
namespace {

constexpr std::array kWriters{&write_pointwise, &write_windows,   &write_products, &write_norms, &write_shapes,
                              &write_attention, &write_recurrent, &write_spectra,  &write_bags};

// Whether the output depends on each node. Nodes lie after those that they read.
std::vector<bool> needed_nodes(const Graph& graph, Value output) {
  std::vector<bool> needed(graph.nodes().size());
  needed[static_cast<std::size_t>(output.node())] = true;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const Value source : sources_of(graph, graph.nodes()[i]))
      needed[static_cast<std::size_t>(source.node())] = true;
  }
  return needed;
}

class Exporter {
 public:
  Exporter(const Graph& graph, Value output, std::string output_name, const ExportSource& source)
      : graph_(graph), output_(output), output_name_(std::move(output_name)), source_(source) {}

  std::string write() {
    const std::vector<bool> needed = needed_nodes(graph_, output_);
    names_.resize(needed.size());
    take_names();
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) write(i);
    }
    document_.set_path("(output)");
    document_.add("Identity", {name_of_value(output_)}, {}, output_name_);
    document_.output(output_name_, output_.type());
    return document_.finish(source_.name, source_.version);
  }

 private:
  std::string name_of_value(Value value) const {
    return names_[static_cast<std::size_t>(value.node())][static_cast<std::size_t>(value.index())];
  }

  // The names of inputs and of the output, which people see, are theirs alone, and those of weights are reserved before
  // other values get names: a model that was exported and read again has weights such as "constant.6". A weight that is
  // called as an input or the output is gets another name.
  void take_names() {
    for (const std::string& name : exported_inputs(graph_, output_)) document_.take(name);
    check(document_.take(output_name_), kSite, "an input is called '{}' as the output is, expected another name",
          output_name_);
    std::vector<std::string> names;
    for (const auto& [parameter, name] : source_.names) names.push_back(name);
    for (const auto& [table, name] : source_.tables) names.push_back(name);
    std::ranges::sort(names);  // as pointers have no order that is the same in the next run
    for (const std::string& name : names) {
      if (document_.take(name)) weights_[name] = name;
    }
    for (const std::string& name : names) {
      std::string& own = weights_[name];
      if (!own.empty()) continue;
      own = name;
      do {
        own += "_weight";
      } while (!document_.take(own));
    }
  }

  // Adds the values of a parameter or a table, and returns the name that they have in the file.
  const std::string& write_weights(const std::string& name) {
    const std::string& own = weights_.at(name);
    document_.initial(own, source_.weights(name));
    return own;
  }

  void write(std::size_t i) {
    const Node& node = graph_.nodes()[i];
    if (node.kind == Node::Kind::Input) {
      check(!node.path.starts_with('@'), kSite, "the model reads {}, which exists only in training", node.path);
      names_[i] = {node.path};
      document_.input(node.path, node.outputs[0]);
    } else if (node.kind == Node::Kind::Parameter) {
      const auto found = source_.names.find(node.parameter);
      check(found != source_.names.end(), kSite, "{}: a parameter has no name, expected one of the model", node.path);
      names_[i] = {write_weights(found->second)};
    } else {
      write_op(i, node);
    }
  }

  // The rows of a sparse table, which is no parameter of the graph.
  void write_lookup(std::size_t i, const TableLookupOp& lookup, const std::string& ids) {
    const auto found = source_.tables.find(&lookup.table());
    check(found != source_.tables.end(), kSite, "a sparse table has no name, expected one of the model");
    std::string& name = tables_[&lookup.table()];
    if (name.empty()) name = write_weights(found->second);
    document_.add("Gather", {name, ids}, {{"axis", std::int64_t{0}}}, names_[i].front());
  }

  void write_op(std::size_t i, const Node& node) {
    for (std::size_t k = 0; k < node.outputs.size(); ++k) names_[i].push_back(document_.fresh("value"));
    document_.set_path(node.path);
    if (const auto* lookup = dynamic_cast<const TableLookupOp*>(node.op.get())) {
      write_lookup(i, *lookup, name_of_value(node.inputs[1]));
      return;
    }
    NodeWriter writer{.document = document_, .graph = graph_, .node = node};
    writer.name_of = [this](Value value) { return name_of_value(value); };
    for (const Value input : node.inputs) {
      const auto& names = names_[static_cast<std::size_t>(input.node())];
      writer.inputs.push_back(names.empty() ? "" : names[static_cast<std::size_t>(input.index())]);
      writer.types.push_back(input.type());
    }
    writer.output = names_[i].front();
    writer.outputs = names_[i];
    for (const auto& write_subject : kWriters) {
      if (write_subject(writer)) return;
    }
    fail(kSite, "{}: the op {} has no form in ONNX's operators here", node.path, node.op->name());
  }

  const Graph& graph_;
  Value output_;
  std::string output_name_;
  const ExportSource& source_;
  Document document_;
  std::vector<std::vector<std::string>> names_;  // of each node's outputs; empty: it is not written
  std::map<const Table*, std::string> tables_;   // names of those that are written
  std::map<std::string, std::string> weights_;   // names in the file, by those in the model
};

}  // namespace

std::vector<Value> sources_of(const Graph& graph, const Node& node) {
  std::vector<Value> sources;
  const auto* recurrent = dynamic_cast<const RecurrentOp*>(node.op.get());
  const bool looks_up = dynamic_cast<const TableLookupOp*>(node.op.get()) != nullptr;
  const std::size_t each = recurrent == nullptr ? 0 : recurrent->options().bias ? 3 : 2;
  for (std::size_t i = looks_up ? 1 : 0; i < node.inputs.size(); ++i) {
    const bool is_product =
        each > 0 && i % each == 0 && i < each * static_cast<std::size_t>(recurrent->options().directions);
    if (!is_product) {
      sources.push_back(node.inputs[i]);
      continue;
    }
    const Node* product = &graph.node(node.inputs[i]);
    while (dynamic_cast<const ReshapeOp*>(product->op.get()) != nullptr) product = &graph.node(product->inputs[0]);
    check(dynamic_cast<const LinearOp*>(product->op.get()) != nullptr, kSite,
          "{}: {} reads the result of another op than a linear layer", node.path, node.op->name());
    sources.insert(sources.end(), product->inputs.begin(), product->inputs.end());
  }
  return sources;
}

void NodeWriter::require(bool condition, std::string_view what) const {
  check(condition, kSite, "{}: {} has {}, which ONNX's operators do not have", node.path, node.op->name(), what);
}

std::vector<std::string> exported_inputs(const Graph& graph, Value output) {
  const std::vector<bool> needed = needed_nodes(graph, output);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i] && graph.nodes()[i].kind == Node::Kind::Input) names.push_back(graph.nodes()[i].path);
  }
  return names;
}

std::string export_graph(const Graph& graph, Value output, const std::string& output_name, const ExportSource& source) {
  check(graph.mode() == Mode::Eval, kSite, "the graph was traced for training, expected evaluation");
  return Exporter(graph, output, output_name, source).write();
}

}  // namespace lockstep::onnx
