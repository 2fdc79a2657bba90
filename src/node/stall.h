// SPDX-License-Identifier: Apache-2.0
/// Why a trainer takes no rows: asks it, by SIGUSR2, for the stacks of its threads, and gathers
/// what it writes to stderr; of a trainer that has no handler for the signal, what the kernel
/// knows.
#ifndef TFOS_NODE_STALL_H
#define TFOS_NODE_STALL_H

#include "node/output.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/// All zero: nobody asks.
struct tfos__stall {
    bool is_asked;
    int64_t answer_at; ///< when what has come is the answer
};

void tfos__stall_ask(struct tfos__stall *stall, pid_t trainer, struct tfos__output *output);

/// TFOS__NEVER when nobody asks.
int64_t tfos__stall_due(const struct tfos__stall *stall);

/// The answer, which the caller frees with tfos__free(); NULL when out of memory.
char *tfos__stall_answer(struct tfos__stall *stall, pid_t trainer, struct tfos__output *output);

#endif
