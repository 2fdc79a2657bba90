// SPDX-License-Identifier: Apache-2.0
// The one rule for who is the executor of a Spark task, for the node's launcher and for feeders
// alike: the rendezvous compares what both say.
#include <tfos/node.h>

#include "base/process.h"

int64_t tfos_process_find_executor(int64_t pid)
{
    return tfos__process_find_executor((pid_t)pid);
}
