# Compiles through ccache where it is installed and the user has not chosen another launcher.
find_program(BACKCAST_CCACHE ccache)
mark_as_advanced(BACKCAST_CCACHE)
# Relative to the sources, so that what one checkout compiled is found from another; precompiled
# headers are stored only when told that no file tests __TIME__.
set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros ${BACKCAST_CCACHE})
foreach(language C CXX)
  if(BACKCAST_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
    set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
  endif()
endforeach()
