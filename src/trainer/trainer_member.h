// SPDX-License-Identifier: Apache-2.0
/// Members of agreements that may outlive their trainer (<tfos/trainer.h>).
#ifndef TFOS_TRAINER_TRAINER_MEMBER_H
#define TFOS_TRAINER_TRAINER_MEMBER_H

#include <tfos/trainer.h>

/// Ends the calls of a trainer's members, waits for them, and lets no further one begin.
void tfos__trainer_member_end_all(struct tfos_trainer *trainer);

#endif
