// SPDX-License-Identifier: Apache-2.0
// The environment is asked in this order: CLASSPATH, which YARN sets in its containers and which
// users of libhdfs have; Hadoop's own command, which knows its installation; Spark's jars, which
// have Hadoop's client among them. A JVM that is not started by `java` expands no "*".
#include "io/class_path.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tfos/file_system.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/process.h"

#define PROGRAM_SECONDS 60 // that `hadoop classpath` may take

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *given_jars; // guarded by the lock

// ---- entries

// Entries, each ended by ":" but the last.
struct entries {
    struct tfos__buffer text;
    bool has_hadoop;
};

static enum tfos_status add(struct entries *entries, const char *entry, struct tfos_error *err)
{
    const char *name = strrchr(entry, '/') ? strrchr(entry, '/') + 1 : entry;
    entries->has_hadoop |= strncmp(name, "hadoop-client-api-", 18) == 0 ||
                           strncmp(name, "hadoop-common-", 14) == 0 ||
                           strcmp(name, "hadoop-common.jar") == 0;
    if (tfos__buffer_size(&entries->text) > 0)
        TFOS__TRY(tfos__buffer_append(&entries->text, ":", 1, err));
    return tfos__buffer_append(&entries->text, entry, strlen(entry), err);
}

// Spark's own jars, and what it alone needs: the JVM would open each of them to look for services.
static bool is_sparks(const char *path)
{
    static const char *const beginnings[] = {
        "algebra_",     "arpack",          "arrow-", "breeze",   "cats-",      "chill",
        "datanucleus-", "datasketches-",   "derby",  "hive-",    "hk2-",       "icu4j",
        "jakarta.",     "jersey-",         "jline",  "json4s-",  "kryo-",      "kubernetes-",
        "lapack",       "netty-tcnative-", "orc-",   "parquet-", "rocksdbjni", "scala-",
        "spark-",       "spire",           "vertx-", "volcano-"};
    const char *name = strrchr(path, '/') + 1;
    for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static enum tfos_status add_matches(struct entries *entries, const char *pattern, bool is_spark,
                                    struct tfos_error *err)
{
    glob_t found = {0};
    enum tfos_status status = TFOS_OK;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && status == TFOS_OK; i++)
            if (!is_spark || !is_sparks(found.gl_pathv[i]))
                status = add(entries, found.gl_pathv[i], err);
    globfree(&found);
    return status;
}

// The jars of a folder, which is Spark's or another. Hadoop's come first: classes are looked for in
// this order.
static enum tfos_status add_folder(struct entries *entries, const char *folder, bool is_spark,
                                   struct tfos_error *err)
{
    static const char *const patterns[] = {"hadoop-*.jar", "[!h]*.jar", "h[!a]*.jar",
                                           "ha[!d]*.jar"};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        char *pattern = tfos__format("%s/%s", folder, patterns[i]);
        if (!pattern)
            return tfos__no_memory(err, "hadoop", "a class path");
        enum tfos_status status = add_matches(entries, pattern, is_spark, err);
        tfos__free(pattern);
        TFOS__TRY(status);
    }
    return TFOS_OK;
}

// A class path as `java` takes it.
static enum tfos_status add_path(struct entries *entries, const char *path, struct tfos_error *err)
{
    char *copy = tfos__strdup(path), *rest = copy, *entry;
    enum tfos_status status = copy ? TFOS_OK : tfos__no_memory(err, "hadoop", "a class path");
    while (status == TFOS_OK && (entry = strsep(&rest, ":\n"))) {
        size_t size = strlen(entry);
        if (size > 1 && strcmp(entry + size - 2, "/*") == 0) {
            entry[size - 2] = '\0';
            status = add_folder(entries, entry, false, err);
        } else if (size > 0) {
            status = add(entries, entry, err);
        }
    }
    tfos__free(copy);
    return status;
}

// ---- Hadoop's command

static enum tfos_status read_all(int fd, struct tfos__buffer *text, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(PROGRAM_SECONDS * 1000);
    for (;;) {
        struct pollfd slot = {.fd = fd, .events = POLLIN};
        int remaining = tfos__remaining_ms(deadline);
        TFOS__TRY(tfos__buffer_reserve(text, 4096, err));
        if (remaining <= 0)
            return tfos__fail(err, TFOS_TIMEOUT,
                              "hadoop: \"hadoop classpath\" has not ended in %d "
                              "seconds",
                              PROGRAM_SECONDS);
        if (poll(&slot, 1, remaining) <= 0)
            continue;
        ssize_t got = read(fd, text->data + text->end, 4096);
        if (got == 0)
            return tfos__buffer_append(text, "", 1, err);
        if (got > 0)
            text->end += (size_t)got;
        else if (errno != EINTR)
            return tfos__fail_errno(err, TFOS_IO, "hadoop: cannot read from \"hadoop classpath\"");
    }
}

// What `program classpath` prints, ended by NUL; NOT_FOUND where there is no such program.
static enum tfos_status ask_command(const char *program, struct tfos__buffer *text,
                                    struct tfos_error *err)
{
    char *argv[] = {(char *)(uintptr_t)program, "classpath", NULL};
    int fds[2], ended;
    pid_t pid;
    if (pipe2(fds, O_CLOEXEC) != 0)
        return tfos__fail_errno(err, TFOS_IO, "hadoop: cannot make a pipe");
    const struct tfos__spawn_options options = {
        .argv = argv, .envp = environ, .stdin_fd = -1, .stdout_fd = fds[1], .stderr_fd = -1};
    enum tfos_status status = tfos__process_spawn(&options, &pid, err);
    close(fds[1]);
    if (status == TFOS_OK) {
        status = read_all(fds[0], text, err);
        if (status < 0)
            kill(pid, SIGKILL);
        while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
            continue;
    }
    close(fds[0]);
    return status;
}

static enum tfos_status add_command(struct entries *entries, const char *program,
                                    struct tfos_error *err)
{
    struct tfos__buffer text = {0};
    enum tfos_status status = ask_command(program, &text, err);
    if (status == TFOS_OK)
        status = add_path(entries, (const char *)text.data, err);
    tfos__buffer_clear(&text);
    return status == TFOS_NOT_FOUND ? TFOS_OK : status;
}

// ---- the class path

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] != '\0' ? value : NULL;
}

static enum tfos_status add_installed(struct entries *entries, struct tfos_error *err)
{
    const char *home =
        variable("HADOOP_HOME") ? variable("HADOOP_HOME") : variable("HADOOP_PREFIX");
    char *program = home ? tfos__format("%s/bin/hadoop", home) : tfos__strdup("hadoop");
    if (!program)
        return tfos__no_memory(err, "hadoop", "a class path");
    enum tfos_status status = add_command(entries, program, err);
    tfos__free(program);
    return status;
}

static enum tfos_status add_spark(struct entries *entries, struct tfos_error *err)
{
    const char *home = variable("SPARK_HOME");
    char *folder = home ? tfos__format("%s/jars", home) : NULL;
    enum tfos_status status = TFOS_OK;
    if (home && !folder)
        return tfos__no_memory(err, "hadoop", "a class path");
    if (folder)
        status = add_folder(entries, folder, true, err);
    tfos__free(folder);
    return status;
}

static enum tfos_status add_given(struct entries *entries, struct tfos_error *err)
{
    enum tfos_status status = TFOS_OK;
    pthread_mutex_lock(&lock);
    if (given_jars)
        status = add_folder(entries, given_jars, true, err);
    pthread_mutex_unlock(&lock);
    return status;
}

static enum tfos_status add_class_path(struct entries *entries, struct tfos_error *err)
{
    const char *path = variable("CLASSPATH");
    return path ? add_path(entries, path, err) : TFOS_OK;
}

// The first source with Hadoop's classes; UNSUPPORTED: none of the first `count`.
static enum tfos_status find_jars(struct entries *entries, size_t count, struct tfos_error *err)
{
    static enum tfos_status (*const sources[])(struct entries *, struct tfos_error *) = {
        add_class_path, add_installed, add_spark, add_given};
    size_t begin = tfos__buffer_size(&entries->text);
    for (size_t i = 0; i < count; i++) {
        TFOS__TRY(sources[i](entries, err));
        if (entries->has_hadoop)
            return TFOS_OK;
        entries->text.end = entries->text.begin + begin;
    }
    return tfos__fail(err, TFOS_UNSUPPORTED,
                      "hadoop: no jars of Hadoop's client were found: set HADOOP_HOME to where "
                      "Hadoop is installed, SPARK_HOME to Spark's folder or CLASSPATH to what "
                      "\"hadoop classpath\" prints, or install pyspark beside this package");
}

static enum tfos_status add_configuration(struct entries *entries, struct tfos_error *err)
{
    static const char standard[] = "/etc/hadoop/conf";
    const char *folder = variable("HADOOP_CONF_DIR");
    if (!folder)
        folder = variable("YARN_CONF_DIR");
    if (!folder && access("/etc/hadoop/conf/core-site.xml", R_OK) == 0)
        folder = standard;
    return folder ? add(entries, folder, err) : TFOS_OK;
}

static enum tfos_status find(struct entries *entries, size_t count, struct tfos_error *err)
{
    TFOS__TRY(add_configuration(entries, err));
    return find_jars(entries, count, err);
}

enum tfos_status tfos__io_class_path_find(char **out, struct tfos_error *err)
{
    struct entries entries = {0};
    enum tfos_status status = find(&entries, 4, err);
    if (status == TFOS_OK)
        status = tfos__buffer_append(&entries.text, "", 1, err);
    if (status == TFOS_OK) {
        *out = tfos__strdup((const char *)entries.text.data);
        status = *out ? TFOS_OK : tfos__no_memory(err, "hadoop", "a class path");
    }
    tfos__buffer_clear(&entries.text);
    return status;
}

bool tfos__io_class_path_is_named(void)
{
    struct entries entries = {0};
    enum tfos_status status = find(&entries, 3, NULL);
    tfos__buffer_clear(&entries.text);
    return status == TFOS_OK;
}

enum tfos_status tfos_hadoop_set_jars(const char *folder, struct tfos_error *err)
{
    char *copy = folder ? tfos__strdup(folder) : NULL;
    if (folder && !copy)
        return tfos__no_memory(err, "hadoop", folder);
    pthread_mutex_lock(&lock);
    char *old = given_jars;
    given_jars = copy;
    pthread_mutex_unlock(&lock);
    tfos__free(old);
    return TFOS_OK;
}

// ---- the JVM's library

static const char *const places[] = {"lib/server/libjvm.so", "jre/lib/server/libjvm.so",
                                     "jre/lib/*/server/libjvm.so", "lib/*/server/libjvm.so"};

// In a Java's folder, of which `home` may be a pattern.
static enum tfos_status find_in(const char *home, char **out, struct tfos_error *err)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !*out; i++) {
        glob_t found = {0};
        char *pattern = tfos__format("%s/%s", home, places[i]);
        if (!pattern)
            return tfos__no_memory(err, "hadoop", "a name");
        if (glob(pattern, 0, NULL, &found) == 0)
            *out = tfos__strdup(found.gl_pathv[0]);
        globfree(&found);
        tfos__free(pattern);
    }
    return TFOS_OK;
}

// The folder of the command `java` that PATH has, in `home`, or "".
static void find_home(char home[PATH_MAX])
{
    const char *path = variable("PATH");
    char name[PATH_MAX];
    home[0] = '\0';
    while (path && home[0] == '\0') {
        size_t size = strcspn(path, ":");
        snprintf(name, sizeof(name), "%.*s/java", (int)size, path);
        if (access(name, X_OK) == 0 && realpath(name, home))
            for (int i = 0; i < 2 && strrchr(home, '/'); i++) // .../bin/java
                *strrchr(home, '/') = '\0';
        path = path[size] == ':' ? path + size + 1 : NULL;
    }
}

enum tfos_status tfos__io_jvm_library_find(char **out, struct tfos_error *err)
{
    char home[PATH_MAX];
    char *found = NULL;
    const char *java = variable("JAVA_HOME");
    if (java) {
        TFOS__TRY(find_in(java, &found, err));
        if (!found)
            return tfos__fail(err, TFOS_UNSUPPORTED, "hadoop: no libjvm.so is in JAVA_HOME, %s",
                              java);
    }
    find_home(home);
    if (!found && home[0] != '\0')
        TFOS__TRY(find_in(home, &found, err));
    if (!found)
        TFOS__TRY(find_in("/usr/lib/jvm/*", &found, err));
    if (!found)
        return tfos__fail(err, TFOS_UNSUPPORTED,
                          "hadoop: no Java was found, which Hadoop's client needs: install one (a "
                          "package openjdk-17-jre-headless), or set JAVA_HOME to it");
    *out = found;
    return TFOS_OK;
}
