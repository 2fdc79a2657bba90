// SPDX-License-Identifier: Apache-2.0
// The lower rank is named first, so that all ranks say the same.
#include "collective/operation.h"

#include "base/fail.h"

#define LIST_SIZE 2048

enum tfos_status
tfos__collective_operation_fail_stalled(const struct tfos__collective_operation *operation,
                                        struct tfos_error *err)
{
    const struct tfos__collective_roster *roster = operation->roster;
    double waited_s = (double)operation->stall_timeout_ms / 1000.0;
    char list[LIST_SIZE] = "";
    struct tfos__bounded_text late = {.data = list, .capacity = sizeof(list)};
    for (int rank = 0; rank < roster->size; rank++)
        if (atomic_load(&operation->reached[rank]) < operation->descriptor.sequence)
            tfos__bounded_text_append(&late, "%s%s", late.size > 0 ? ", " : "",
                                      roster->members[rank].label);
    if (late.size > 0)
        return tfos__fail(err, TFOS_TIMEOUT, "not called within %.10g s by %s", waited_s, list);
    return tfos__fail(err, TFOS_TIMEOUT,
                      "all ranks live and have called it, but nothing has moved between their "
                      "hosts for %.10g s: see whether the network is broken",
                      waited_s);
}

enum tfos_status tfos__collective_operation_fail_mismatch(
    const struct tfos__collective_operation *operation, int other_rank,
    const struct tfos__collective_descriptor *other, struct tfos_error *err)
{
    char texts[2][TFOS__COLLECTIVE_TEXT_SIZE];
    const struct tfos__collective_roster *roster = operation->roster;
    bool is_lower = roster->rank < other_rank;
    int first = is_lower ? roster->rank : other_rank, second = is_lower ? other_rank : roster->rank;
    const struct tfos__collective_descriptor *own = &operation->descriptor;
    return tfos__fail(err, TFOS_INVALID,
                      "the programs of the ranks differ: %s calls %s where %s calls %s",
                      roster->members[first].label,
                      tfos__collective_descriptor_print(is_lower ? own : other, texts[0]),
                      roster->members[second].label,
                      tfos__collective_descriptor_print(is_lower ? other : own, texts[1]));
}
