/* SPDX-License-Identifier: 0BSD */
/* Synthetic "spoken words", the same on every machine: no recording, no file, no licence. */
#ifndef FINETUNE_WORDS_H
#define FINETUNE_WORDS_H

enum { kFrames = 49, kBands = 10, kWordElements = kFrames * kBands };

/* Words 0 to 9 are those the network was trained on; 10 and 11 are new to it. */
enum { kWords = 12, kKnownWords = 10 };

/* Utterance `number` of a word: f32[49,10], time by frequency band. A word is three tracks that
 * move through the bands; an utterance shifts, stretches and scales them and adds noise. */
void make_word(int word, int number, float image[kWordElements]);

#endif
