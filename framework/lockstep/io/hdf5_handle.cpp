#include "lockstep/io/hdf5_handle.h"

#include <hdf5.h>

#include <type_traits>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

static_assert(std::is_same_v<hid_t, Hdf5Id> && std::is_same_v<herr_t, int>);

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

struct Failure {
  std::string text = {};         // the messages of HDF5's error stack, outermost call first, each text once
  bool memory_is_short = false;  // whether the cause is that HDF5 got no memory
};

// Takes the thread's error stack.
Failure take_failure() {
  Failure failure;
  const auto append = [](unsigned, const H5E_error2_t* entry, void* out) -> herr_t {
    auto& [joined, memory_is_short] = *static_cast<Failure*>(out);
    // The variables, not the macros H5E_RESOURCE and H5E_NOSPACE, which call HDF5 and may clear the stack.
    memory_is_short = memory_is_short || (entry->maj_num == H5E_RESOURCE_g && entry->min_num == H5E_NOSPACE_g);
    const std::string_view message = entry->desc ? entry->desc : "";
    if (!message.empty() && joined.find(message) == std::string::npos) {
      if (!joined.empty()) joined += " <- ";
      joined += message;
    }
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &failure);
  H5Eclear2(H5E_DEFAULT);
  if (failure.text.empty()) failure.text = "HDF5 gave no reason";
  return failure;
}

}  // namespace

std::unique_lock<std::mutex> lock_hdf5() { return std::unique_lock(hdf5_mutex()); }

Hdf5Session::Hdf5Session() : lock_(hdf5_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, print_, print_data_); }

std::int64_t check_hdf5(std::int64_t code, std::string_view file, std::string_view operation, std::string_view site) {
  if (code >= 0) return code;
  const Failure failure = take_failure();
  const std::string text = formatted("[{}] {}: {}: {}", site, file, operation, failure.text);
  if (failure.memory_is_short) throw Unavailable(text);
  throw Error(text);
}

}  // namespace lockstep::io
