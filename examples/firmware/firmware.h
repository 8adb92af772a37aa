/* SPDX-License-Identifier: 0BSD */
/* What startup.c offers to a program. */
#ifndef FIRMWARE_H
#define FIRMWARE_H

#include <stddef.h>

int main(void);

/* Bytes of stack that were written since reset. */
size_t stack_used(void);
/* Bytes of the program in flash: code, constants and the initial values of data. */
size_t flash_used(void);
/* "text number\n" on the debugger's console. */
void print_line(const char *text, unsigned long number);

#endif
