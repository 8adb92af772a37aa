# For a sanitized build by clang, which takes long over optimising: precompiled standard headers, and
# no optimisation of what is not fuzzed. A file may then lack an #include unnoticed, so no other
# build has this.
option(BACKCAST_PRECOMPILE "Precompile the standard headers; optimise only readers (clang)" OFF)

# To all libraries of the given folders; a file of its own holds the headers.
function(backcast_precompile name optimization)
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  if(NOT EXISTS ${empty})
    file(WRITE ${empty} "")
  endif()
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE backcast_options fmt::fmt)
  # For ccache, which gives the headers a time of their own.
  target_compile_options(${name} PRIVATE ${optimization} "SHELL:-Xclang -fno-pch-timestamp")
  target_precompile_headers(${name} PRIVATE <algorithm> <array> <bit> <charconv> <cmath> <cstdint>
    <cstring> <fmt/format.h> <functional> <limits> <map> <memory> <numeric> <optional> <set> <span>
    <string> <string_view> <unordered_map> <utility> <variant> <vector>)
  foreach(folder ${ARGN})
    get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
      get_target_property(type ${target} TYPE)
      get_target_property(linked ${target} LINK_LIBRARIES)
      if(type STREQUAL "STATIC_LIBRARY" AND linked)
        target_precompile_headers(${target} REUSE_FROM ${name})
        target_compile_options(${target} PRIVATE ${optimization})
      endif()
    endforeach()
  endforeach()
endfunction()
