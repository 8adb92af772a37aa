# `cmake --install`: the program and what it reads (the folders install their own), the CMake package
# (BackcastConfig.cmake.in), and the libraries with their headers for passes of one's own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Backcast)

configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/BackcastConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/BackcastConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_BINDIR)
# The version file leaves the pointer size open: firmware for 32 bits uses the same program.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/BackcastConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/cmake/BackcastConfig.cmake
              ${PROJECT_BINARY_DIR}/cmake/BackcastConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/BackcastAddModel.cmake
        DESTINATION ${package})

set(libraries backcast_options backcast_types_text)
foreach(library ir loop frontend passes library backend_c backend_llvm driver)
  if(TARGET backcast_${library})
    list(APPEND libraries backcast_${library})
  endif()
endforeach()
install(TARGETS ${libraries} EXPORT BackcastTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT BackcastTargets NAMESPACE Backcast:: DESTINATION ${package})
foreach(folder ir frontend passes backend driver)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/backcast
          FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN harness EXCLUDE
                         PATTERN math EXCLUDE PATTERN rules EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${PROJECT_SOURCE_DIR}/runtime-c/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR}/runtime-c)
