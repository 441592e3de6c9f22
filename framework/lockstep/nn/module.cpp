#include "lockstep/nn/module.h"

#include "lockstep/core/error.h"
#include "lockstep/nn/embedding.h"

namespace lockstep::nn {

void Module::check_name(const std::string& name) const {
  check(!name.empty() && name.find('.') == std::string::npos, "module",
        "'{}' cannot be the name of a part of '{}', expected a name without dots that is not empty", name, path());
  for (const Entry& e : entries_) check(e.name != name, "module", "'{}' already has a parameter '{}'", path(), name);
  for (const auto& [n, child] : children_) check(n != name, "module", "'{}' already has a child '{}'", path(), name);
}

Module::~Module() {
  for (const auto& [name, child] : children_) child->parent_ = nullptr;
  if (parent_ != nullptr) std::erase_if(parent_->children_, [this](const auto& entry) { return entry.second == this; });
}

void Module::add_child(std::string name, Module& child) {
  check_name(name);
  child.parent_ = this;
  child.name_ = name;
  children_.emplace_back(std::move(name), &child);
}

Parameter& Module::add(std::string name, Parameter parameter) {
  check_name(name);
  owned_.push_back(std::make_unique<Parameter>(std::move(parameter)));
  entries_.push_back({std::move(name), owned_.back().get()});
  return *owned_.back();
}

void Module::tie(std::string name, Parameter& parameter) {
  check_name(name);
  entries_.push_back({std::move(name), &parameter});
}

std::string Module::path() const {
  if (parent_ == nullptr) return name_;
  const std::string above = parent_->path();
  return above.empty() ? name_ : above + "." + name_;
}

void Module::collect(const std::string& prefix, std::vector<NamedParameter>& all) const {
  for (const bool buffers : {false, true}) {
    for (const Entry& e : entries_) {
      if ((e.parameter->role == Role::Buffer) == buffers) all.push_back({prefix + e.name, e.parameter});
    }
  }
  for (const auto& [name, child] : children_) child->collect(prefix + name + ".", all);
}

std::vector<NamedParameter> Module::named_parameters() const {
  std::vector<NamedParameter> all;
  collect("", all);
  return all;
}

void Module::collect(const std::string& prefix, std::vector<NamedModule>& all) const {
  for (const auto& [name, child] : children_) {
    all.push_back({prefix + name, child});
    child->collect(prefix + name + ".", all);
  }
}

std::vector<NamedModule> Module::named_modules() const {
  std::vector<NamedModule> all;
  collect("", all);
  return all;
}

void Module::freeze_statistics(bool freeze) {
  for (const auto& [name, child] : children_) child->freeze_statistics(freeze);
}

Module& Module::part(const std::string& path) {
  const std::size_t dot = path.find('.');
  std::string names;
  for (const auto& [name, child] : children_) {
    if (name == path.substr(0, dot)) return dot == std::string::npos ? *child : child->part(path.substr(dot + 1));
    names += (names.empty() ? "" : ", ") + name;
  }
  fail("module", "'{}' has no part '{}', there are: {}", this->path(), path, names);
}

void Module::set_trainable(bool trainable) {
  for (const NamedParameter& p : named_parameters()) {
    if (p.parameter->role != Role::Buffer) p.parameter->trainable = trainable;
  }
  for (const NamedTable& t : named_tables(*this)) t.table->trainable = trainable;
}

}  // namespace lockstep::nn
