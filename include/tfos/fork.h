// SPDX-License-Identifier: Apache-2.0
/// Handles and fork(). A handle belongs to the process that opened it. A process that is forked
/// from it inherits the handle's memory, descriptors and mappings, but no thread of it, and each
/// lock as it happened to be: it may only leave the handle alone, and open its own.
#ifndef TFOS_FORK_H
#define TFOS_FORK_H

#include <stdint.h>
#include <tfos/export.h>

/// A number that a process has as long as it lives and that is another in each process forked from
/// it. Costs a load; any thread.
TFOS_API uint32_t tfos_fork_generation(void);

#endif
