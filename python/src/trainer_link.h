// SPDX-License-Identifier: Apache-2.0
/// Trainer link: what datasets of files keep of their Trainer. Passes over files are held by
/// TensorFlow's iterators, which may live longer than the Trainer, and are freed by threads that
/// must not wait for the GIL.
#ifndef TFOS_PYTHON_TRAINER_LINK_H
#define TFOS_PYTHON_TRAINER_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/trainer.h>

struct tfos__py_trainer_link;

/// A link to `trainer`, which is held once. NULL: no memory. With the GIL.
struct tfos__py_trainer_link *tfos__py_trainer_link_open(struct tfos_trainer *trainer);

/// Ends what waits through the link, from now on.
void tfos__py_trainer_link_interrupt(struct tfos__py_trainer_link *link);

/// Waits until nothing uses the trainer, and lets nothing use it any more. With the GIL.
void tfos__py_trainer_link_close(struct tfos__py_trainer_link *link);

/// Gives up a hold. NULL is accepted. Any thread, without the GIL too.
void tfos__py_trainer_link_release(struct tfos__py_trainer_link *link);

/// A member of agreements, for the options of a dataset: agree, is_interrupted and release, whose
/// context it is. Its own name is the next of the link. NULL: no memory. With the GIL.
struct tfos__py_trainer_member;
struct tfos__py_trainer_member *tfos__py_trainer_member_open(struct tfos__py_trainer_link *link,
                                                             int64_t timeout_ms);
const char *tfos__py_trainer_member_name(const struct tfos__py_trainer_member *member);
enum tfos_status tfos__py_trainer_member_agree(void *member, const char *name,
                                               const char *value_json, char **values_json,
                                               struct tfos_error *err);
bool tfos__py_trainer_member_is_interrupted(void *member);
void tfos__py_trainer_member_release(void *member);

#endif
