# What cmake --install lays down, and the package that find_package(lockstep) finds. Headers of the zoo are included as
# "models/zoo/resnet.h", those of data sets as "data/datasets/mnist.h"; each lie in a folder of their own.
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)

set_target_properties(lockstep_models PROPERTIES EXPORT_NAME models)
set_target_properties(lockstep_data PROPERTIES EXPORT_NAME data)
install(TARGETS lockstep lockstep_models lockstep_data EXPORT lockstep)
set(LOCKSTEP_INSTALLED_PROGRAMS train_toy train_mnist train_resnet train_images train_fields train_forces train_gpt train_recsys)
install(TARGETS lockstep_tool lockstep_data_tool ${LOCKSTEP_INSTALLED_PROGRAMS})
include(cmake/pages.cmake)
install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${package} FILE lockstepTargets.cmake)

# The headers for users, and the internal ones that they include; those of the zoo and of the data sets are their own.
include(cmake/public_headers.cmake)
file(GLOB zoo_and_data RELATIVE ${PROJECT_SOURCE_DIR} models/zoo/*.h data/datasets/*.h)
set(headers ${LOCKSTEP_PUBLIC_HEADERS})
foreach(header ${zoo_and_data})
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"lockstep/")
  foreach(line ${lines})
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
    list(APPEND headers ${included})
  endforeach()
endforeach()
lockstep_with_included("${headers}" headers)
foreach(header ${headers})
  cmake_path(GET header PARENT_PATH folder)
  install(FILES framework/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(DIRECTORY models/zoo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep_models/models FILES_MATCHING PATTERN "*.h")
install(DIRECTORY data/datasets DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep_data/data FILES_MATCHING PATTERN "*.h")

# What starts ranks; and the documentation, laid out as in the checkout, so that its links hold.
install(PROGRAMS scripts/train.sh scripts/run_cluster.sh scripts/setup_ssh.sh DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
install(FILES scripts/slurm.sbatch DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep)
install(DIRECTORY hostfiles containers models/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep USE_SOURCE_PERMISSIONS)
set(documentation ${CMAKE_INSTALL_DATADIR}/doc/lockstep)
install(FILES README.md CONTRIBUTING.md DESTINATION ${documentation})
install(FILES LICENSE DESTINATION ${documentation} OPTIONAL)
install(DIRECTORY docs examples DESTINATION ${documentation})

configure_package_config_file(cmake/lockstepConfig.cmake.in lockstepConfig.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/lockstepConfigVersion.cmake
  cmake/lockstepFindBlas.cmake cmake/lockstepFindHdf5.cmake DESTINATION ${package})
