// Work in parts on threads of its own. An exception of a part ends that part alone; the caller gets it when all parts
// have ended.
#pragma once

#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace lockstep {

// The exceptions of the parts of some work. Different threads may run different parts.
class PartErrors {
 public:
  explicit PartErrors(std::size_t parts) : errors_(parts) {}

  // Calls work(), and keeps its exception as that of the part.
  template <class Work>
  void run(std::size_t part, const Work& work) {
    try {
      work();
    } catch (...) {
      errors_[part] = std::current_exception();
    }
  }
  // Throws the exception of a part, if it has one.
  void rethrow(std::size_t part) const {
    if (errors_[part]) std::rethrow_exception(errors_[part]);
  }
  // Throws the exception of the first part that has one.
  void rethrow_first() const {
    for (std::size_t part = 0; part < errors_.size(); ++part) rethrow(part);
  }

 private:
  std::vector<std::exception_ptr> errors_;
};

// Calls work(part) for each part, of which there is at least one: part 0 on the caller's thread, each other one on a
// thread of its own. Returns when all have ended.
template <class Work>
PartErrors run_on_threads(std::size_t parts, const Work& work) {
  PartErrors errors(parts);
  const auto run = [&](std::size_t part) { errors.run(part, [&] { work(part); }); };
  {
    std::vector<std::jthread> others;
    for (std::size_t part = 1; part < parts; ++part) others.emplace_back(run, part);
    run(0);
  }
  return errors;
}

// The same; then throws the exception of the first part that has one.
template <class Work>
void on_threads(std::size_t parts, const Work& work) {
  run_on_threads(parts, work).rethrow_first();
}

}  // namespace lockstep
