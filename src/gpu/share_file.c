// SPDX-License-Identifier: Apache-2.0
// A record is at the first unit of each lock; the kernel joins locks of one holder that touch.
// It is written before the lock is taken, under the folder's lock: whoever finds a unit locked
// reads the record of its holder, and no earlier one's.
#include "gpu/share_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fail.h"

#define FOLDER_MODE 0700
#define FILE_MODE 0600
#define RECORDS_AT 4096
#define POLL_MS 10

/// Who took a unit last.
struct record {
    int64_t pid;
    char owner[112];
};

enum tfos_status tfos__gpu_share_folder(const char *directory, char path[TFOS__GPU_PATH_SIZE],
                                        struct tfos_error *err)
{
    struct stat state;
    const char *chosen = directory ? directory : getenv("TFOS_RUNTIME_DIR");
    int size = chosen && chosen[0]
                   ? snprintf(path, TFOS__GPU_PATH_SIZE, "%s", chosen)
                   : snprintf(path, TFOS__GPU_PATH_SIZE, "/tmp/tfos-%u", (unsigned)geteuid());
    // A UUID and a slash have to fit behind it.
    if (size < 0 || size >= TFOS__GPU_PATH_SIZE - 128)
        return tfos__fail(err, TFOS_INVALID, "gpu: the name of the folder for locks is too long");
    if (mkdir(path, FOLDER_MODE) != 0 && errno != EEXIST)
        return tfos__fail_errno(
            err, TFOS_IO,
            "gpu: cannot make the folder %s for locks (TFOS_RUNTIME_DIR names another)", path);
    if (lstat(path, &state) != 0)
        return tfos__fail_errno(err, TFOS_IO, "gpu: cannot look at the folder %s", path);
    if (!S_ISDIR(state.st_mode) || state.st_uid != geteuid() || (state.st_mode & 022))
        return tfos__fail(err, TFOS_DENIED,
                          "gpu: %s is not a folder that only this user can write to: remove it, or "
                          "let TFOS_RUNTIME_DIR name another",
                          path);
    return TFOS_OK;
}

static int open_file(const char *folder, const char *name)
{
    char path[TFOS__GPU_PATH_SIZE + 8];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
}

enum tfos_status tfos__gpu_share_lock(const char *folder, struct tfos__wait *wait, int *fd,
                                      struct tfos_error *err)
{
    int lock = open_file(folder, "gpus.lock");
    if (lock < 0)
        return tfos__fail_errno(err, TFOS_IO, "gpu: cannot open %s/gpus.lock", folder);
    enum tfos_status status = TFOS_OK;
    while (flock(lock, LOCK_EX | LOCK_NB) != 0 && status == TFOS_OK) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            status = tfos__fail_errno(err, TFOS_IO, "gpu: cannot lock %s/gpus.lock", folder);
        else if (tfos__remaining_ms(wait->deadline) == 0)
            status = tfos__fail(err, TFOS_TIMEOUT,
                                "gpu: another process holds %s/gpus.lock and does not go on "
                                "(fuser %s/gpus.lock names it)",
                                folder, folder);
        else if (poll(NULL, 0, POLL_MS) == 0)
            status = tfos__wait_check(wait, err);
    }
    if (status < 0)
        close(lock);
    else
        *fd = lock;
    return status;
}

enum tfos_status tfos__gpu_share_open(const char *folder, const char *uuid,
                                      struct tfos__gpu_share *share, struct tfos_error *err)
{
    char name[128];
    size_t size = 0;
    for (; uuid[size] && size < sizeof(name) - 1; size++)
        name[size] = isalnum((unsigned char)uuid[size]) ? uuid[size] : '-';
    name[size] = '\0';
    int fd = open_file(folder, name);
    if (fd < 0)
        return tfos__fail_errno(err, TFOS_IO, "gpu: cannot open %s/%s", folder, name);
    *share = (struct tfos__gpu_share){.fd = fd};
    return TFOS_OK;
}

static struct flock range_of(int unit, int count)
{
    return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = unit, .l_len = count};
}

/// Whether others hold one of the units; `lock` is then a lock of theirs there.
static bool find_lock(const struct tfos__gpu_share *share, int unit, int count, struct flock *lock)
{
    *lock = range_of(unit, count);
    return fcntl(share->fd, F_OFD_GETLK, lock) == 0 && lock->l_type != F_UNLCK;
}

/// The next lock of others from `unit` on, in order; false behind the last.
static bool next_lock(const struct tfos__gpu_share *share, int unit, struct flock *lock)
{
    for (; unit < TFOS__GPU_UNITS && find_lock(share, unit, TFOS__GPU_UNITS - unit, lock); unit++)
        if (lock->l_start <= unit || find_lock(share, unit, 1, lock))
            return true;
    return false;
}

static int end_of(const struct flock *lock)
{
    return (int)(lock->l_start + lock->l_len);
}

static bool is_held(const struct tfos__gpu_share *share, int unit)
{
    return share->held[unit / 8] >> unit % 8 & 1;
}

int tfos__gpu_share_count(const struct tfos__gpu_share *share)
{
    struct flock lock;
    int count = 0;
    for (int unit = 0; next_lock(share, unit, &lock); unit = end_of(&lock))
        count += (int)lock.l_len;
    return count;
}

static struct record make_record(const char *owner)
{
    struct record record = {.pid = getpid()};
    snprintf(record.owner, sizeof(record.owner), "%s", owner ? owner : "");
    return record;
}

static off_t record_place(int unit)
{
    return RECORDS_AT + (off_t)unit * (off_t)sizeof(struct record);
}

static bool write_record(const struct tfos__gpu_share *share, int unit, const struct record *record)
{
    return pwrite(share->fd, record, sizeof(*record), record_place(unit)) ==
           (ssize_t)sizeof(*record);
}

enum tfos_status tfos__gpu_share_take(struct tfos__gpu_share *share, int units, const char *owner,
                                      struct tfos_error *err)
{
    struct record record = make_record(owner);
    if (TFOS__GPU_UNITS - tfos__gpu_share_count(share) < units)
        return tfos__fail(err, TFOS_BUSY, "gpu: less than that is free");
    for (int unit = 0, run; unit < TFOS__GPU_UNITS && share->units < units; unit += run) {
        struct flock lock;
        run = units - share->units;
        run = run < TFOS__GPU_UNITS - unit ? run : TFOS__GPU_UNITS - unit;
        if (find_lock(share, unit, run, &lock))
            run = 1; // what is free is in pieces
        if (find_lock(share, unit, run, &lock))
            continue;
        lock = range_of(unit, run);
        if (!write_record(share, unit, &record) || fcntl(share->fd, F_OFD_SETLK, &lock) != 0)
            return tfos__fail_errno(err, TFOS_IO, "gpu: cannot lock a share of a GPU");
        for (int held = unit; held < unit + run; held++)
            share->held[held / 8] |= (unsigned char)(1 << held % 8);
        share->units += run;
    }
    return TFOS_OK;
}

void tfos__gpu_share_rename(const struct tfos__gpu_share *share, const char *owner)
{
    struct record record = make_record(owner);
    for (int unit = 0; unit < TFOS__GPU_UNITS; unit++)
        if (is_held(share, unit) && (unit == 0 || !is_held(share, unit - 1)))
            (void)write_record(share, unit, &record); // it is there for people only
}

/// The entry of the holder that wrote the record, or NULL.
static struct tfos_gpu_holder *find_holder(struct tfos_gpu_holder *holders, size_t count,
                                           const struct record *record)
{
    for (size_t i = 0; i < count; i++)
        if (holders[i].pid == record->pid && strcmp(holders[i].owner, record->owner) == 0)
            return &holders[i];
    return NULL;
}

size_t tfos__gpu_share_holders(const struct tfos__gpu_share *share, struct tfos_gpu_holder *holders,
                               size_t capacity)
{
    struct flock lock;
    size_t count = 0;
    for (int unit = 0; next_lock(share, unit, &lock); unit = end_of(&lock)) {
        struct record record;
        if (pread(share->fd, &record, sizeof(record), record_place((int)lock.l_start)) !=
            (ssize_t)sizeof(record))
            continue;
        record.owner[sizeof(record.owner) - 1] = '\0';
        struct tfos_gpu_holder *holder = find_holder(holders, count, &record);
        if (!holder && count < capacity) {
            holder = &holders[count++];
            *holder = (struct tfos_gpu_holder){.pid = record.pid};
            memcpy(holder->owner, record.owner, sizeof(record.owner));
        }
        if (holder)
            holder->share += (int)lock.l_len;
    }
    return count;
}

void tfos__gpu_share_close(struct tfos__gpu_share *share)
{
    if (share->fd >= 0)
        close(share->fd);
    *share = (struct tfos__gpu_share){.fd = -1};
}
