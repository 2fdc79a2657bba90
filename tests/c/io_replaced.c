// SPDX-License-Identifier: Apache-2.0
// What a file keeps when another takes its place: the links to it, and who may do what with it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <tfos/file_list.h>
#include <tfos/stream.h>
#include <unistd.h>

#include "folder.h"

#define GROUP 12345
#define NOBODY 65534

static bool has_unnamed_files = true;

/// In place of the C library's, for a file system without O_TMPFILE.
int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if ((flags & O_TMPFILE) == O_TMPFILE && !has_unnamed_files) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return openat(AT_FDCWD, path, flags, mode);
}

/// Makes sure that nothing but these names, divided by spaces, is there, and removes it all.
static void leave_only(struct folder folder, const char *names)
{
    char *copy = strdup(names), *rest = copy, *name;
    while ((name = strsep(&rest, " ")))
        assert_int_equal(remove(name), 0);
    free(copy);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder.path), 0);
}

static void make_file(const char *path, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static enum tfos_status try_write(const char *path, const char *text, struct tfos_error *err)
{
    struct tfos_stream *stream = NULL;
    enum tfos_status status = tfos_stream_open_writer(path, &stream, err);
    if (status == TFOS_OK)
        status = stream->write(stream, text, strlen(text), err);
    if (status == TFOS_OK)
        status = stream->finish(stream, err);
    tfos_stream_close(stream);
    return status;
}

static void write_text(const char *path, const char *text)
{
    struct tfos_error err;
    assert_done(try_write(path, text, &err));
}

static void assert_text(const char *path, const char *text)
{
    char bytes[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, bytes, sizeof(bytes) - 1) >= 0);
    assert_int_equal(close(fd), 0);
    assert_string_equal(bytes, text);
}

static struct stat state_of(const char *path)
{
    struct stat state;
    assert_int_equal(lstat(path, &state), 0);
    return state;
}

static void s89_links_stay_links(void **state)
{
    struct folder folder = enter_folder();
    (void)state;
    assert_int_equal(mkdir("d", 0777), 0);
    make_file("d/file", 0644);
    assert_int_equal(symlink("d/file", "link"), 0);
    assert_int_equal(symlink("../link", "d/chain"), 0);
    assert_int_equal(symlink("d", "folder"), 0);
    write_text("link", "one");
    assert_text("d/file", "one");
    write_text("folder/chain", "two");
    assert_text("d/file", "two");
    assert_true(S_ISLNK(state_of("link").st_mode) && S_ISLNK(state_of("d/chain").st_mode));
    assert_int_equal(symlink("d/new", "dangling"), 0);
    write_text("dangling", "three");
    assert_text("d/new", "three");
    assert_true(S_ISLNK(state_of("dangling").st_mode));
    leave_only(folder, "link d/chain folder dangling d/file d/new d");
}

static void s89_links_in_a_circle(void **state)
{
    struct folder folder = enter_folder();
    struct tfos_error err = {0};
    (void)state;
    assert_int_equal(symlink("b", "a"), 0);
    assert_int_equal(symlink("a", "b"), 0);
    assert_int_equal(try_write("a", "x", &err), TFOS_IO);
    assert_int_equal(err.os_errno, ELOOP);
    leave_only(folder, "a b");
}

/// /dev/stdout leads to a file here, whose name it must not take.
static void s89_what_is_open_is_written_to(void **state)
{
    struct folder folder = enter_folder();
    char link[64];
    (void)state;
    int fd = open("out", O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_int_equal(write(fd, "head ", 5), 5);
    struct stat before = state_of("out");
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    write_text(link, "one ");
    snprintf(link, sizeof(link), "/dev/fd/%d", fd);
    assert_int_equal(symlink(link, "stdout"), 0);
    write_text("stdout", "two");
    assert_text("out", "head one two");
    assert_int_equal(state_of("out").st_ino, before.st_ino);
    assert_int_equal(close(fd), 0);
    leave_only(folder, "out stdout");
}

static void s89_the_mode_stays(void **state)
{
    struct folder folder = enter_folder();
    static const mode_t modes[] = {0600, 0644, 0666, 0640, 0777};
    (void)state;
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        make_file("file", modes[i]);
        write_text("file", "x");
        assert_int_equal(state_of("file").st_mode & 07777, modes[i]);
        assert_int_equal(remove("file"), 0);
    }
    mode_t mask = umask(027);
    write_text("file", "x");
    umask(mask);
    assert_int_equal(state_of("file").st_mode & 07777, 0640); // a new one
    leave_only(folder, "file");
}

static void s89_owner_and_group_stay(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); // nobody else can make such a file
    struct folder folder = enter_folder();
    make_file("file", 0660);
    assert_int_equal(chown("file", NOBODY, GROUP), 0);
    write_text("file", "x");
    assert_int_equal(state_of("file").st_uid, NOBODY);
    assert_int_equal(state_of("file").st_gid, GROUP);
    assert_int_equal(state_of("file").st_mode & 07777, 0660);
    leave_only(folder, "file");
}

/// Writes as nobody; what came of it.
static enum tfos_status write_as_nobody(const char *path)
{
    int wait_status = 0;
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (pid == 0) {
        enum tfos_status status = TFOS_INVALID;
        if (setgid(NOBODY) == 0 && setuid(NOBODY) == 0)
            status = try_write(path, "x", NULL);
        _exit(-status);
    }
    assert_int_equal(waitpid(pid, &wait_status, 0), pid);
    assert_true(WIFEXITED(wait_status));
    return (enum tfos_status) - WEXITSTATUS(wait_status);
}

static void s89_what_cannot_be_kept_is_refused(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); // one user more is needed
    struct folder folder = enter_folder();
    assert_int_equal(chmod(".", 0777), 0);
    make_file("group", 0666);
    assert_int_equal(chown("group", NOBODY, GROUP), 0);
    assert_int_equal(write_as_nobody("group"), TFOS_DENIED);
    make_file("closed", 0444);
    assert_int_equal(write_as_nobody("closed"), TFOS_DENIED);
    make_file("open", 0666);
    assert_int_equal(chown("open", 0, NOBODY), 0);
    assert_int_equal(write_as_nobody("open"), TFOS_OK); // becomes nobody's
    assert_text("group", "");
    assert_text("closed", "");
    assert_text("open", "x");
    leave_only(folder, "group closed open");
}

/// An access list for the system, in its form: version, and tag, permissions and id of each entry.
struct access_list {
    uint32_t version;
    struct {
        uint16_t tag, permissions;
        uint32_t id;
    } entries[5];
};

/// rw for the owner and user 1, r for the group, nothing for others.
static const struct access_list list = {
    2,
    {{1, 6, UINT32_MAX}, {2, 6, 1}, {4, 4, UINT32_MAX}, {16, 6, UINT32_MAX}, {32, 0, UINT32_MAX}}};

static void assert_access_lists_equal(const char *one, const char *other)
{
    char lists[2][256] = {"", ""};
    ssize_t size = getxattr(one, "system.posix_acl_access", lists[0], sizeof(lists[0]));
    assert_int_equal(getxattr(other, "system.posix_acl_access", lists[1], sizeof(lists[1])), size);
    assert_memory_equal(lists[0], lists[1], sizeof(lists[0]));
    assert_int_equal(state_of(one).st_mode, state_of(other).st_mode);
}

static void s89_access_lists_stay(void **state)
{
    struct folder folder = enter_folder();
    (void)state;
    make_file("listed", 0640);
    if (setxattr("listed", "system.posix_acl_access", &list, sizeof(list), 0) != 0) {
        leave_only(folder, "listed");
        skip(); // the file system has none
    }
    make_file("same", 0640);
    assert_int_equal(setxattr("same", "system.posix_acl_access", &list, sizeof(list), 0), 0);
    write_text("listed", "x");
    assert_access_lists_equal("listed", "same");
    make_file("plain", 0644);
    assert_int_equal(setxattr(".", "system.posix_acl_default", &list, sizeof(list), 0), 0);
    write_text("plain", "x"); // it had none, and gets none
    assert_int_equal(getxattr("plain", "system.posix_acl_access", NULL, 0), -1);
    assert_int_equal(state_of("plain").st_mode & 07777, 0644);
    write_text("new", "x"); // as any new file in this folder
    int fd = open("theirs", O_WRONLY | O_CREAT | O_EXCL, 0666);
    assert_int_equal(close(fd), 0);
    assert_access_lists_equal("new", "theirs");
    assert_true(getxattr("new", "system.posix_acl_access", NULL, 0) > 0);
    leave_only(folder, "listed same plain new theirs");
}

static void s89_names_of_any_length(void **state)
{
    struct folder folder = enter_folder();
    char name[256] = "";
    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    write_text(name, "x");
    write_text(name, "y");
    assert_text(name, "y");
    leave_only(folder, name);
}

/// What is here besides `name`; an empty text if nothing.
static void find_other(const char *name, char other[256])
{
    DIR *folder = opendir(".");
    const struct dirent *entry;
    other[0] = '\0';
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, name) != 0 && strspn(entry->d_name, ".") < strlen(entry->d_name))
            snprintf(other, 256, "%s", entry->d_name);
    closedir(folder);
}

/// Where a file cannot be without a name, it has a hidden one meanwhile.
static void s79_what_is_being_written_is_hidden(void **state)
{
    struct folder folder = enter_folder();
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    char other[256];
    (void)state;
    has_unnamed_files = false;
    make_file("file", 0600);
    for (int is_finished = 0; is_finished < 2; is_finished++) {
        assert_done(tfos_stream_open_writer("file", &stream, &err));
        assert_done(stream->write(stream, "x", 1, &err));
        find_other("file", other);
        assert_int_equal(strncmp(other, ".file.part", 10), 0);
        assert_int_equal(state_of(other).st_mode & 07777, 0600);
        assert_text("file", "");
        if (is_finished)
            assert_done(stream->finish(stream, &err));
        tfos_stream_close(stream);
        find_other("file", other);
        assert_string_equal(other, "");
    }
    assert_text("file", "x");
    write_text("new", "x");
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(state_of("new").st_mode & 07777, 0666 & ~mask);
    has_unnamed_files = true;
    leave_only(folder, "file new");
}

static void make_old(const char *path)
{
    static const struct timespec times[2] = {{0}};
    make_file(path, 0600);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/// What killed processes have left goes, once nobody can be writing it.
static void what_was_being_written_is_removed(void **state)
{
    static const char locked[] = ".b.part0123456789abcdef", gone[] = ".c.part0123456789abcdef";
    static const char young[] = ".d.part0123456789abcdef", other[] = ".e.part0123456789abcde";
    struct folder folder = enter_folder();
    (void)state;
    make_old(locked);
    make_old(gone);
    make_file(young, 0600);
    make_old(other);
    int fd = open(locked, O_WRONLY);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    write_text("a", "x"); // without a name until it is whole: nobody leaves anything here
    assert_true(is_there(gone));
    has_unnamed_files = false;
    write_text("a", "x");
    assert_true(!is_there(gone) && is_there(locked) && is_there(young) && is_there(other));
    make_old(gone);
    write_text("a", "y"); // not each time
    assert_true(is_there(gone));
    assert_int_equal(close(fd), 0);
    leave_folder(folder);
}

/// A writer has the lock until its file has its name.
static void what_is_being_written_is_locked(void **state)
{
    struct folder folder = enter_folder();
    struct tfos_error err;
    struct tfos_stream *stream = NULL;
    char part[256];
    (void)state;
    has_unnamed_files = false;
    assert_done(tfos_stream_open_writer("file", &stream, &err));
    find_other("file", part);
    assert_true(tfos_file_name_is_part(part));
    int fd = open(part, O_RDWR);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
    assert_done(stream->finish(stream, &err));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(close(fd), 0);
    tfos_stream_close(stream);
    leave_folder(folder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s89_links_stay_links),
    cmocka_unit_test(s89_links_in_a_circle),
    cmocka_unit_test(s89_what_is_open_is_written_to),
    cmocka_unit_test(s89_the_mode_stays),
    cmocka_unit_test(s89_owner_and_group_stay),
    cmocka_unit_test(s89_what_cannot_be_kept_is_refused),
    cmocka_unit_test(s89_access_lists_stay),
    cmocka_unit_test(s89_names_of_any_length),
    cmocka_unit_test(s79_what_is_being_written_is_hidden),
    cmocka_unit_test(what_was_being_written_is_removed),
    cmocka_unit_test(what_is_being_written_is_locked),
};

TEST_MAIN(cases)
