# Puts the text of runtime-c/include/bc_types.h into backcast_library: generated headers carry it.
set(bc_types ${PROJECT_SOURCE_DIR}/runtime-c/include/bc_types.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${bc_types})
file(READ ${bc_types} bc_types_content)
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/library/bc_types.inc
     CONTENT "R\"bc_types(@bc_types_content@)bc_types\"\n" @ONLY)
target_include_directories(backcast_library PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/library)
find_package(nlohmann_json REQUIRED)
target_link_libraries(backcast_library PUBLIC nlohmann_json::nlohmann_json)
