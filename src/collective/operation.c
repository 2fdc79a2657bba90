// SPDX-License-Identifier: Apache-2.0
// The lower rank is named first, so that all ranks say the same.
#include "collective/operation.h"

#include "base/fail.h"

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
