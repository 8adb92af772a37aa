# The runtime of training libraries in the two forms that the emitters put into them: one C text
# (bc_runtime_text.inc, a string literal; bc_runtime_all.c, the same as a file), and LLVM bitcode per
# family of targets (bc_runtime_<family>.inc, bytes).
set(runtime_folder ${PROJECT_SOURCE_DIR}/runtime-c)
set(runtime_output ${CMAKE_CURRENT_BINARY_DIR}/runtime)
set(runtime_text "")
foreach(name bc_bytes.h bc_runtime.h bc_runtime.c bc_checkpoint.c)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${runtime_folder}/${name})
  file(READ ${runtime_folder}/${name} runtime_file)
  string(REPLACE "/* SPDX-License-Identifier: 0BSD */\n" "" runtime_file "${runtime_file}")
  string(REGEX REPLACE "#include [^\n]*\n" "" runtime_file "${runtime_file}")
  string(APPEND runtime_text "${runtime_file}\n")
endforeach()
file(CONFIGURE OUTPUT ${runtime_output}/bc_runtime_text.inc
     CONTENT "R\"runtime(@runtime_text@)runtime\"\n" @ONLY)
file(CONFIGURE OUTPUT ${runtime_output}/bc_runtime_all.c
     CONTENT "#include \"bc_types.h\"\n@runtime_text@" @ONLY)

find_program(BACKCAST_CLANG NAMES clang-19 clang HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED
             DOC "clang of LLVM 19: compiles the runtime of training libraries to bitcode")
set(runtime_bitcode "")
function(add_runtime_bitcode family)
  set(bitcode ${runtime_output}/bc_runtime_${family}.bc)
  add_custom_command(
    OUTPUT ${runtime_output}/bc_runtime_${family}.inc
    COMMAND ${BACKCAST_CLANG} ${ARGN} -std=c11 -Os -ffreestanding -fno-builtin -fno-ident
            -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-stack-protector
            -I${runtime_folder}/include -emit-llvm -c ${runtime_output}/bc_runtime_all.c
            -o ${bitcode}
    COMMAND ${CMAKE_COMMAND} -DINPUT=${bitcode}
            -DOUTPUT=${runtime_output}/bc_runtime_${family}.inc
            -P ${CMAKE_CURRENT_SOURCE_DIR}/library/bytes_to_text.cmake
    DEPENDS ${runtime_output}/bc_runtime_all.c ${runtime_folder}/include/bc_types.h
            ${CMAKE_CURRENT_SOURCE_DIR}/library/bytes_to_text.cmake
    COMMENT "Compiling the runtime for ${family}" VERBATIM)
  set(runtime_bitcode ${runtime_bitcode} ${runtime_output}/bc_runtime_${family}.inc PARENT_SCOPE)
endfunction()
add_runtime_bitcode(x86_64 --target=x86_64-linux-gnu)
add_runtime_bitcode(aarch64 --target=aarch64-linux-gnu)
add_runtime_bitcode(arm --target=armv7-none-eabi -mfloat-abi=soft)
add_runtime_bitcode(thumb --target=thumbv6m-none-eabi -mfloat-abi=soft)
add_runtime_bitcode(riscv32 --target=riscv32-unknown-elf)
add_runtime_bitcode(riscv64 --target=riscv64-linux-gnu)
add_runtime_bitcode(wasm32 --target=wasm32)
