/* SPDX-License-Identifier: 0BSD */
/* The images, in the device's flash. */
  .section .rodata.images, "a"
  .global train_begin, train_end, test_begin, test_end
train_begin:
  .incbin "digits_train.bin"
train_end:
test_begin:
  .incbin "digits_test.bin"
test_end:
