# CMake toolchain: Cortex-M4 with single-precision floating-point unit, no operating system; programs
# run in QEMU.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR cortex-m4)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT
    "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -ffreestanding")
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-nostdlib -nostartfiles -Wl,--gc-sections -Wl,--no-enum-size-warning -Wl,-z,noexecstack")
set(CMAKE_CROSSCOMPILING_EMULATOR
    qemu-system-arm -M mps2-an386 -nodefaults -display none -nic user,restrict=on
    -chardev stdio,id=console,signal=off
    -semihosting-config enable=on,target=native,chardev=console -kernel)
