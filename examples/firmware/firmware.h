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
/* The same with an end of one's own. */
void print_number(const char *text, unsigned long number, const char *end);
/* "text value" with four decimals, for values of 0 to 400,000. */
void print_fixed(const char *text, float value, const char *end);

#endif
