#include "lockstep/host/blas.h"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <filesystem>

#include "lockstep/core/error.h"

namespace lockstep::host {
namespace {

constexpr int kOwnPool = 1;  // openblas_get_parallel(): 0 serial, 1 threads of its own, 2 OpenMP's

// Returns the function with this C name in the libraries of the process, or nullptr.
template <class Function>
Function* function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

std::string openblas() {
  const auto config = function<char*()>("openblas_get_config");
  const auto kernels = function<char*()>("openblas_get_corename");
  if (config == nullptr || kernels == nullptr) return "";
  std::string version = config();  // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
  if (const std::size_t end = version.find(' ', version.find(' ') + 1); end != std::string::npos) version.resize(end);
  return formatted("{} {}", version, kernels());
}

std::string mkl() {
  const auto version = function<void(char*, int)>("MKL_Get_Version_String");
  if (version == nullptr) return "";
  std::array<char, 256> text{};
  version(text.data(), static_cast<int>(text.size()) - 1);
  return std::string(text.data());
}

std::string flexiblas() {
  const auto backend = function<int(char*, std::size_t)>("flexiblas_current_backend");
  if (backend == nullptr) return "";
  std::array<char, 128> text{};
  backend(text.data(), text.size() - 1);
  return formatted("FlexiBLAS {}", text.data());
}

std::string blis() {
  const auto version = function<const char*()>("bli_info_get_version_str");
  if (version == nullptr) return "";
  return formatted("BLIS {}", version());
}

std::string file_of_blas() {
  Dl_info place{};
  const void* product = dlsym(RTLD_DEFAULT, "sgemm_");
  if (product == nullptr || dladdr(product, &place) == 0 || place.dli_fname == nullptr) return "linked statically";
  return std::filesystem::path(place.dli_fname).filename().string();
}

}  // namespace

BlasFacts blas_facts() {
  BlasFacts facts;
  // FlexiBLAS first: it loads one of the others.
  for (const auto name : {flexiblas, openblas, mkl, blis}) {
    if (facts.name = name(); !facts.name.empty()) break;
  }
  if (facts.name.empty()) facts.name = file_of_blas();
  const auto parallel = function<int()>("openblas_get_parallel");
  const auto threads = function<int()>("openblas_get_num_threads");
  if (parallel != nullptr && threads != nullptr && parallel() == kOwnPool) facts.own_pool = threads();
  return facts;
}

void set_blas_threads(int count) {
  for (const char* name : {"flexiblas_set_num_threads", "openblas_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (const auto set = function<void(int)>(name)) return set(count);
  }
  if (const auto set = function<void(std::int64_t)>("bli_thread_set_num_threads")) set(count);
}

}  // namespace lockstep::host
