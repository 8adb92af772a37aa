# Compiles through ccache where it is installed and the user has not chosen another launcher.
find_program(BACKCAST_CCACHE ccache)
mark_as_advanced(BACKCAST_CCACHE)
foreach(language C CXX)
  if(BACKCAST_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${BACKCAST_CCACHE})
  endif()
endforeach()
