# Spack's recipe, for the checkout that it lies in (docs/install.md):
#   spack repo add packaging/spack && spack dev-build lockstep@0.1.0
# tests/scripts/check_recipes.py holds every option, version and dependency here to CMakeLists.txt.
from spack.package import *


class Lockstep(CMakePackage):
    """MPI-native data-parallel training in C++."""

    version("0.1.0")

    variant("onednn", default=True, description="Convolutions on oneDNN beside the generic kernels")
    variant("shared", default=False, description="The libraries are shared ones")
    variant("bindings", default=True, description="The C library, and the Fortran modules on it")
    variant("tests", default=False, description="Tests, for ctest in the build folder")
    variant("bench", default=False, description="Benchmarks")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+bindings")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("fmt")
    depends_on("spdlog")
    depends_on("cli11")
    depends_on("nlohmann-json")
    depends_on("zlib-api")
    depends_on("libarchive")
    depends_on("openssl")
    depends_on("blas")
    depends_on("hdf5")
    depends_on("xxhash")
    depends_on("hwloc")
    depends_on("libjpeg-turbo")
    depends_on("libpng")
    depends_on("minizip")
    depends_on("onednn@2.6:3", when="+onednn")
    depends_on("googletest", when="+tests", type="build")

    conflicts("%gcc@:11", msg="C++20 as it is used here needs GCC 12 or newer")

    def cmake_args(self):
        return [
            self.define_from_variant("LOCKSTEP_WITH_ONEDNN", "onednn"),
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define_from_variant("LOCKSTEP_BUILD_C", "bindings"),
            self.define_from_variant("LOCKSTEP_BUILD_TESTS", "tests"),
            self.define_from_variant("LOCKSTEP_BUILD_BENCH", "bench"),
            self.define("LOCKSTEP_BUILD_EXAMPLES", False),
            self.define("LOCKSTEP_INSTALL", True),
        ]
