# backcast_add_model(): described in BackcastConfig.cmake.
include_guard(GLOBAL)

function(backcast_add_model target)
  cmake_parse_arguments(PARSE_ARGV 1 model "" "MODEL;NAME;TARGET;EMIT" "ARGS")
  if(model_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "backcast_add_model(${target}): what is \"${model_UNPARSED_ARGUMENTS}\"? "
                        "Arguments of `backcast compile` come after ARGS.")
  endif()
  if(NOT model_MODEL)
    message(FATAL_ERROR "backcast_add_model(${target}): give the model, MODEL file.onnx")
  endif()
  if(NOT model_NAME)
    set(model_NAME ${target})
  endif()
  if(NOT model_TARGET)
    if(CMAKE_CROSSCOMPILING)
      message(FATAL_ERROR "backcast_add_model(${target}): say for which machine, "
                          "TARGET cortex-m4 for example; `backcast inspect --targets` lists them")
    endif()
    set(model_TARGET native)
  endif()
  cmake_path(ABSOLUTE_PATH model_MODEL NORMALIZE)
  if(NOT EXISTS ${model_MODEL})
    message(FATAL_ERROR "backcast_add_model(${target}): there is no file ${model_MODEL}")
  endif()

  if(NOT model_EMIT)
    if(model_TARGET MATCHES "^(c99|esp32)$") # there is C alone for them
      set(model_EMIT c)
    else()
      set(model_EMIT lib)
    endif()
  endif()
  if(NOT model_EMIT MATCHES "^(lib|c)$")
    message(FATAL_ERROR "backcast_add_model(${target}): EMIT ${model_EMIT}: choose lib or c")
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/backcast/${target})
  set(header ${folder}/${model_NAME}.h)
  if(model_EMIT STREQUAL "c")
    set(made ${folder}/${model_NAME}.c)
  elseif(model_TARGET MATCHES "-windows$")
    set(made ${folder}/${model_NAME}.lib)
  else()
    set(made ${folder}/lib${model_NAME}.a)
  endif()
  add_custom_command(
    OUTPUT ${made} ${header}
    COMMAND ${BACKCAST_PROGRAM} compile ${model_MODEL} --name ${model_NAME}
            --target ${model_TARGET} --emit ${model_EMIT} -o ${folder} ${model_ARGS}
    DEPENDS ${model_MODEL} ${BACKCAST_PROGRAM}
    COMMENT "Compiling ${model_NAME} for ${model_TARGET}"
    VERBATIM)
  # The folder must exist for an include directory to be accepted.
  file(MAKE_DIRECTORY ${folder})

  if(model_EMIT STREQUAL "c")
    # What is large lies in a file that the assembler includes.
    string(TOUPPER ${model_NAME} macro)
    add_library(${target} STATIC ${made} ${header})
    target_include_directories(${target} PUBLIC ${folder})
    if(model_TARGET STREQUAL "native")
      target_compile_options(${target} PRIVATE -march=native)
    endif()
    target_compile_definitions(
      ${target} PRIVATE "${macro}_CONSTANTS_FILE=\"${folder}/${model_NAME}.constants.bin\"")
    return()
  endif()
  add_custom_target(${target}_compile DEPENDS ${made} ${header})
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${made}
                        INTERFACE_INCLUDE_DIRECTORIES ${folder})
  add_dependencies(${target} ${target}_compile)
endfunction()
