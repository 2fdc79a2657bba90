// SPDX-License-Identifier: Apache-2.0
/// The shares of a GPU that processes of one user hold: one file a GPU, in a folder of that user.
///
/// A GPU has 1,000 units. Who holds a unit has a lock on the byte of its number (an open file
/// description lock, F_OFD_SETLK), which the kernel releases when the last process that has the
/// descriptor is gone, however it ended. Behind the bytes is a record of the holder for the
/// first unit of each lock; it means something only while that is locked. Units are taken under the
/// lock of the folder, so that a process that wants several GPUs gets all or none.
#ifndef TFOS_GPU_SHARE_FILE_H
#define TFOS_GPU_SHARE_FILE_H

#include <stdint.h>
#include <tfos/gpu.h>

#include "base/clock.h"

#define TFOS__GPU_UNITS 1000
#define TFOS__GPU_PATH_SIZE 512

/// What this process holds of one GPU. All zero but `fd`, -1: nothing.
struct tfos__gpu_share {
    int fd; ///< owned
    int units;
    unsigned char held[(TFOS__GPU_UNITS + 7) / 8]; ///< a bit for each unit
};

/// The folder of the locks: `directory`, TFOS_RUNTIME_DIR or one of this user's in /tmp. It is made
/// if need be. DENIED when it is another user's, or others may write there.
enum tfos_status tfos__gpu_share_folder(const char *directory, char path[TFOS__GPU_PATH_SIZE],
                                        struct tfos_error *err);

/// Takes the lock of the folder, which the descriptor `*fd` holds until it is closed.
enum tfos_status tfos__gpu_share_lock(const char *folder, struct tfos__wait *wait, int *fd,
                                      struct tfos_error *err);

/// Opens the file of the GPU with this UUID, which is made if need be, and holds nothing of it.
enum tfos_status tfos__gpu_share_open(const char *folder, const char *uuid,
                                      struct tfos__gpu_share *share, struct tfos_error *err);

/// How many units others hold.
int tfos__gpu_share_count(const struct tfos__gpu_share *share);

/// Takes `units` of the units that nobody holds, under the lock of the folder. BUSY: there are
/// fewer.
enum tfos_status tfos__gpu_share_take(struct tfos__gpu_share *share, int units, const char *owner,
                                      struct tfos_error *err);

/// Says who has the units from now on.
void tfos__gpu_share_rename(const struct tfos__gpu_share *share, const char *owner);

/// The other processes that hold units, the first `capacity` of them; returns how many it gave.
size_t tfos__gpu_share_holders(const struct tfos__gpu_share *share, struct tfos_gpu_holder *holders,
                               size_t capacity);

void tfos__gpu_share_close(struct tfos__gpu_share *share);

#endif
