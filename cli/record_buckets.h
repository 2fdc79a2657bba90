// SPDX-License-Identifier: Apache-2.0
/// Mixing more records than memory holds: each goes to a bucket by chance, a temporary file, and
/// the buckets, mixed one by one, make the whole. What is in a bucket may be too much again.
#ifndef TFOS_CLI_RECORD_BUCKETS_H
#define TFOS_CLI_RECORD_BUCKETS_H

#include "record_hand.h"

struct mixing {
    const struct record_options *options; ///< of the files that are read
    struct random_numbers numbers;
    struct outputs outputs;
    uint64_t memory; ///< bytes of records to be held at once
};

/// Reads the files and writes their records in an order of which each is as likely as any other.
/// The exit status.
int mix_files(struct mixing *mixing, const char *const *paths, int count);

#endif
