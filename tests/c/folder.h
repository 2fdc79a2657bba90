// SPDX-License-Identifier: Apache-2.0
/// A folder of a case's own, in which it works.
#ifndef TFOS_TEST_FOLDER_H
#define TFOS_TEST_FOLDER_H

#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"

struct folder {
    char path[64];
};

/// Makes one and goes there.
static inline struct folder enter_folder(void)
{
    struct folder folder = {"/tmp/tfos-test-XXXXXX"};
    assert_non_null(mkdtemp(folder.path));
    assert_int_equal(chdir(folder.path), 0);
    return folder;
}

static inline int remove_entry(const char *path, const struct stat *state, int type,
                               struct FTW *place)
{
    (void)state;
    (void)type;
    (void)place;
    return remove(path);
}

/// Removes it with all that is in it.
static inline void leave_folder(struct folder folder)
{
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(nftw(folder.path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
