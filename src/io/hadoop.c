// SPDX-License-Identifier: Apache-2.0
// Hadoop keeps the file systems that it has made, by scheme, host and user, so each call asks for
// its own.
#include "io/hadoop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tfos/file_list.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/file_name.h"
#include "io/local_files.h"

#define OPTION "org/apache/hadoop/fs/Options$Rename"

// A server that does not answer is asked five times, a second each, by its connection, and that
// again five times by the call; one in safe mode by the call alone.
#define RETRY_POLICY "dfs.client.retry.policy"
#define RETRIES "1000,5"
#define DEFAULT_RETRIES "10000,6,60000,10" // Hadoop's own, which it uses only where it is set

struct tfos__hadoop tfos__hadoop;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_ready;

// ---- Hadoop's classes

static const struct {
    const char *class, *name, *signature;
    size_t offset;
    bool is_newer;
} methods[] = {
#define X(member, class, name, signature)                                                          \
    {class, name, signature, offsetof(struct tfos__hadoop, member), false},
    TFOS__HADOOP_METHODS(X)
#undef X
#define X(member, class, name, signature)                                                          \
    {class, name, signature, offsetof(struct tfos__hadoop, member), true},
        TFOS__HADOOP_NEWER_METHODS(X)
#undef X
};

static enum tfos_status find_methods(struct tfos__jni *env, struct tfos_error *err)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        void *class = env->call->FindClass(env, methods[i].class), *method = NULL;
        if (class)
            method = env->call->GetMethodID(env, class, methods[i].name, methods[i].signature);
        if (methods[i].is_newer)
            env->call->ExceptionClear(env);
        TFOS__TRY(tfos__io_java_check(env, err, "cannot use Hadoop's class %s", methods[i].class));
        memcpy((char *)&tfos__hadoop + methods[i].offset, &method, sizeof(method));
        env->call->DeleteLocalRef(env, class); // a frame has room for some
    }
    return TFOS_OK;
}

// Options[] {OVERWRITE}; NULL with an exception.
static void *make_overwrite(struct tfos__jni *env)
{
    void *class = env->call->FindClass(env, OPTION);
    void *field =
        class ? env->call->GetStaticFieldID(env, class, "OVERWRITE", "L" OPTION ";") : NULL;
    void *value = field ? env->call->GetStaticObjectField(env, class, field) : NULL;
    void *array = value ? env->call->NewObjectArray(env, 1, class, value) : NULL;
    return array ? env->call->NewGlobalRef(env, array) : NULL;
}

// HDFS's classes, with which its own settings are read, may be missing.
static void find_hdfs(struct tfos__jni *env)
{
    void *class = env->call->FindClass(env, "org/apache/hadoop/hdfs/HdfsConfiguration");
    void *init = class ? env->call->GetStaticMethodID(env, class, "init", "()V") : NULL;
    if (init)
        env->call->CallStaticVoidMethodA(env, class, init, NULL);
    env->call->ExceptionClear(env);
    tfos__hadoop.hdfs_class =
        tfos__io_jvm_find_class(env, "org/apache/hadoop/hdfs/DistributedFileSystem");
    env->call->ExceptionClear(env);
    tfos__hadoop.hdfs_writer_class =
        tfos__io_jvm_find_class(env, "org/apache/hadoop/hdfs/client/HdfsDataOutputStream");
    env->call->ExceptionClear(env);
}

// A name node that restarts is waited for: without name services of several nodes Hadoop's client
// would fail with the first call that it does not answer. Where the user has a policy, it stays.
static void *make_configuration(struct tfos__jni *env)
{
    void *class = env->call->FindClass(env, "org/apache/hadoop/conf/Configuration");
    void *made =
        class ? env->call->NewObjectA(env, class, tfos__hadoop.configuration_init, NULL) : NULL;
    if (!made)
        return NULL;
    union tfos__jni_value spec[] = {{.l = tfos__io_jvm_make_string(env, RETRY_POLICY ".spec")},
                                    {.l = tfos__io_jvm_make_string(env, RETRIES)}};
    union tfos__jni_value enabled[] = {
        {.l = tfos__io_jvm_make_string(env, RETRY_POLICY ".enabled")},
        {.l = tfos__io_jvm_make_string(env, "true")}};
    char *given = tfos__io_jvm_get_text(
        env, env->call->CallObjectMethodA(env, made, tfos__hadoop.configuration_get, spec));
    if (!given || strcmp(given, DEFAULT_RETRIES) == 0) {
        env->call->CallVoidMethodA(env, made, tfos__hadoop.configuration_set, spec);
        env->call->CallVoidMethodA(env, made, tfos__hadoop.configuration_set, enabled);
    }
    tfos__free(given);
    return env->call->NewGlobalRef(env, made);
}

static enum tfos_status find_all(struct tfos__jni *env, struct tfos_error *err)
{
    if (!tfos__io_java_exceptions_find(env)) {
        env->call->ExceptionClear(env);
        return tfos__fail(err, TFOS_UNSUPPORTED, "hadoop: this JVM lacks classes of Java");
    }
    TFOS__TRY(find_methods(env, err));
    tfos__hadoop.path_class = tfos__io_jvm_find_class(env, "org/apache/hadoop/fs/Path");
    find_hdfs(env);
    tfos__hadoop.configuration = make_configuration(env);
    TFOS__TRY(tfos__io_java_check(env, err, "cannot read Hadoop's configuration"));
    tfos__hadoop.overwrite = make_overwrite(env);
    return tfos__io_java_check(env, err, "cannot use Hadoop's classes");
}

static enum tfos_status get_ready(struct tfos__jni *env, struct tfos_error *err)
{
    if (atomic_load(&is_ready))
        return TFOS_OK;
    pthread_mutex_lock(&lock);
    enum tfos_status status = atomic_load(&is_ready) ? TFOS_OK : find_all(env, err);
    if (status == TFOS_OK)
        atomic_store(&is_ready, true);
    pthread_mutex_unlock(&lock);
    return status;
}

// ---- calls

void *tfos__io_hadoop_make_path(struct tfos__jni *env, const char *name)
{
    size_t offset = tfos_file_name_path_offset(name);
    // Without a path, a URI would stand for the user's folder.
    char *rooted = name[offset] == '\0' ? tfos__format("%s/", name) : NULL;
    union tfos__jni_value text = {.l = tfos__io_jvm_make_string(env, rooted ? rooted : name)};
    tfos__free(rooted);
    return text.l
               ? env->call->NewObjectA(env, tfos__hadoop.path_class, tfos__hadoop.path_init, &text)
               : NULL;
}

// A name such as hdfs:///a is in the default file system, whose host messages are to have.
static void complete_name(struct tfos__hadoop_call *call)
{
    const struct tfos__jni_functions *jni = call->env->call;
    size_t offset = tfos_file_name_path_offset(call->name);
    union tfos__jni_value path = {.l = call->path};
    if (offset == 0 || !strchr(":/", call->name[offset - 1]))
        return;
    void *full =
        jni->CallObjectMethodA(call->env, call->system, tfos__hadoop.system_make_qualified, &path);
    void *text =
        full ? jni->CallObjectMethodA(call->env, full, tfos__hadoop.path_to_text, NULL) : NULL;
    call->full_name = tfos__io_jvm_get_text(call->env, text);
    jni->ExceptionClear(call->env);
    call->name = call->full_name ? call->full_name : call->name;
}

enum tfos_status tfos__io_hadoop_begin(struct tfos__hadoop_call *call, const char *name,
                                       struct tfos_error *err)
{
    union tfos__jni_value configuration;
    if (!tfos__text_is_utf8(name, strlen(name)))
        return tfos__fail(err, TFOS_INVALID, "hadoop: the name %s is not UTF-8", name);
    TFOS__TRY(tfos__io_jvm_enter(&call->env, err));
    enum tfos_status status = get_ready(call->env, err);
    call->name = name;
    call->path = status == TFOS_OK ? tfos__io_hadoop_make_path(call->env, name) : NULL;
    configuration.l = tfos__hadoop.configuration;
    if (call->path)
        call->system = call->env->call->CallObjectMethodA(
            call->env, call->path, tfos__hadoop.path_get_system, &configuration);
    if (status == TFOS_OK)
        status = tfos__io_hadoop_check(call, "find the file system of", err);
    if (status < 0)
        return tfos__io_hadoop_end(call, status);
    complete_name(call);
    return TFOS_OK;
}

enum tfos_status tfos__io_hadoop_end(struct tfos__hadoop_call *call, enum tfos_status status)
{
    tfos__io_jvm_leave(call->env);
    tfos__free(call->full_name);
    return status;
}

enum tfos_status tfos__io_hadoop_check(const struct tfos__hadoop_call *call, const char *verb,
                                       struct tfos_error *err)
{
    return tfos__io_java_check(call->env, err, "cannot %s %s", verb, call->name);
}

void tfos__io_hadoop_rename(const struct tfos__hadoop_call *call, void *from, void *to)
{
    const union tfos__jni_value arguments[] = {
        {.l = from}, {.l = to}, {.l = tfos__hadoop.overwrite}};
    call->env->call->CallVoidMethodA(call->env, call->system, tfos__hadoop.system_rename,
                                     arguments);
}

// ---- what is there

static void copy_text(struct tfos__jni *env, void *object, void *method, char text[64])
{
    char *found =
        tfos__io_jvm_get_text(env, env->call->CallObjectMethodA(env, object, method, NULL));
    env->call->ExceptionClear(env); // not every file system has owners
    snprintf(text, 64, "%s", found ? found : "");
    tfos__free(found);
}

// Of a FileStatus.
static void describe(struct tfos__jni *env, void *status, struct tfos_file_info *info)
{
    const struct tfos__jni_functions *jni = env->call;
    bool is_folder = jni->CallBooleanMethodA(env, status, tfos__hadoop.status_is_folder, NULL);
    *info = (struct tfos_file_info){.kind = is_folder ? TFOS_FILE_FOLDER : TFOS_FILE_REGULAR,
                                    .has_details = true};
    if (!is_folder) {
        info->size =
            (uint64_t)jni->CallLongMethodA(env, status, tfos__hadoop.status_get_size, NULL);
        info->replication =
            jni->CallShortMethodA(env, status, tfos__hadoop.status_get_replication, NULL);
    }
    info->modified_ms = jni->CallLongMethodA(env, status, tfos__hadoop.status_get_time, NULL);
    void *permission =
        jni->CallObjectMethodA(env, status, tfos__hadoop.status_get_permission, NULL);
    if (permission)
        info->mode =
            (unsigned)jni->CallShortMethodA(env, permission, tfos__hadoop.permission_get, NULL) &
            07777;
    copy_text(env, status, tfos__hadoop.status_get_owner, info->owner);
    copy_text(env, status, tfos__hadoop.status_get_group, info->group);
}

enum tfos_status tfos__io_hadoop_look(struct tfos_file_system *system, const char *name,
                                      struct tfos_file_info *info, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    struct tfos_error own;
    union tfos__jni_value path;
    (void)system;
    err = err ? err : &own;
    TFOS__TRY(tfos__io_hadoop_begin(&call, name, err));
    path.l = call.path;
    void *found = call.env->call->CallObjectMethodA(call.env, call.system,
                                                    tfos__hadoop.system_get_status, &path);
    enum tfos_status status = tfos__io_hadoop_check(&call, "look at", err);
    // What has a file above it is not there either.
    if (status == TFOS_NOT_FOUND || (status < 0 && err->os_errno == ENOTDIR)) {
        *info = (struct tfos_file_info){.kind = TFOS_FILE_NONE, .has_details = true};
        status = TFOS_OK;
    } else if (status == TFOS_OK) {
        describe(call.env, found, info);
    }
    return tfos__io_hadoop_end(&call, status);
}

// The path of a Path in its file system, for tfos__free(); NULL with an exception, or without.
static char *get_path(struct tfos__jni *env, void *path)
{
    void *uri = env->call->CallObjectMethodA(env, path, tfos__hadoop.path_to_uri, NULL);
    void *text =
        uri ? env->call->CallObjectMethodA(env, uri, tfos__hadoop.uri_get_path, NULL) : NULL;
    return tfos__io_jvm_get_text(env, text);
}

// Passes the next entry to `take`. END: there is none.
static enum tfos_status take_next(const struct tfos__hadoop_call *call, void *iterator,
                                  const char *folder, tfos_file_taker *take, void *entries,
                                  struct tfos_error *err)
{
    struct tfos__jni *env = call->env;
    const struct tfos__jni_functions *jni = env->call;
    struct tfos_file_info info;
    bool has_next = jni->CallBooleanMethodA(env, iterator, tfos__hadoop.iterator_has_next, NULL);
    TFOS__TRY(tfos__io_hadoop_check(call, "list", err));
    if (!has_next)
        return TFOS_END;
    void *status = jni->CallObjectMethodA(env, iterator, tfos__hadoop.iterator_next, NULL);
    TFOS__TRY(tfos__io_hadoop_check(call, "list", err));
    describe(env, status, &info);
    void *path = jni->CallObjectMethodA(env, status, tfos__hadoop.status_get_path, NULL);
    char *name = tfos__io_jvm_get_text(
        env, jni->CallObjectMethodA(env, path, tfos__hadoop.path_get_name, NULL));
    char *place = get_path(env, path);
    enum tfos_status result = TFOS_OK;
    if (!name || !place)
        result = tfos__no_memory(err, "hadoop", "a name");
    else if (strcmp(place, folder) != 0) // a file is the only entry of itself
        result = take(entries, name, &info, err);
    tfos__free(place);
    tfos__free(name);
    return result;
}

static enum tfos_status take_all(const struct tfos__hadoop_call *call, void *iterator,
                                 tfos_file_taker *take, void *entries, struct tfos_error *err)
{
    struct tfos__jni *env = call->env;
    char *folder = get_path(env, call->path);
    enum tfos_status status = folder ? TFOS_OK : tfos__no_memory(err, "hadoop", "a name");
    while (status == TFOS_OK && env->call->PushLocalFrame(env, 32) == TFOS__JNI_OK) {
        status = take_next(call, iterator, folder, take, entries, err);
        env->call->PopLocalFrame(env, NULL);
    }
    tfos__free(folder);
    if (status == TFOS_OK)
        status = tfos__no_memory(err, "hadoop", "references in the JVM");
    return status == TFOS_END ? TFOS_OK : status;
}

static enum tfos_status list(struct tfos_file_system *system, const char *folder,
                             tfos_file_taker *take, void *entries, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    union tfos__jni_value path;
    (void)system;
    TFOS__TRY(tfos__io_hadoop_begin(&call, folder, err));
    path.l = call.path;
    void *iterator =
        call.env->call->CallObjectMethodA(call.env, call.system, tfos__hadoop.system_list, &path);
    enum tfos_status status = tfos__io_hadoop_check(&call, "list", err);
    if (status == TFOS_OK)
        status = take_all(&call, iterator, take, entries, err);
    if (status == TFOS_NOT_FOUND)
        status = TFOS_OK;
    return tfos__io_hadoop_end(&call, status);
}

// ---- changes

static enum tfos_status make_folder(struct tfos_file_system *system, const char *name,
                                    struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    union tfos__jni_value path;
    (void)system;
    TFOS__TRY(tfos__io_hadoop_begin(&call, name, err));
    path.l = call.path;
    bool is_there = call.env->call->CallBooleanMethodA(call.env, call.system,
                                                       tfos__hadoop.system_make_folders, &path);
    enum tfos_status status = tfos__io_hadoop_check(&call, "make the folder", err);
    if (status == TFOS_OK && !is_there)
        status = tfos__fail(err, TFOS_IO, "hadoop: cannot make the folder %s", call.name);
    return tfos__io_hadoop_end(&call, status);
}

static enum tfos_status rename_file(struct tfos_file_system *system, const char *from,
                                    const char *to, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    (void)system;
    TFOS__TRY(tfos__io_hadoop_begin(&call, from, err));
    void *target = tfos__io_hadoop_make_path(call.env, to);
    if (target)
        tfos__io_hadoop_rename(&call, call.path, target);
    enum tfos_status status =
        tfos__io_java_check(call.env, err, "cannot rename %s to %s", call.name, to);
    return tfos__io_hadoop_end(&call, status);
}

static enum tfos_status remove_file(struct tfos_file_system *system, const char *name,
                                    bool is_recursive, struct tfos_error *err)
{
    struct tfos__hadoop_call call = {0};
    union tfos__jni_value arguments[2];
    (void)system;
    TFOS__TRY(tfos__io_hadoop_begin(&call, name, err));
    arguments[0].l = call.path;
    arguments[1] = (union tfos__jni_value){.z = is_recursive};
    bool was_there = call.env->call->CallBooleanMethodA(call.env, call.system,
                                                        tfos__hadoop.system_delete, arguments);
    enum tfos_status status = tfos__io_hadoop_check(&call, "delete", err);
    if (status == TFOS_OK && !was_there)
        status = tfos__fail(err, TFOS_NOT_FOUND, "hadoop: cannot delete %s: it does not exist",
                            call.name);
    return tfos__io_hadoop_end(&call, status);
}

static struct tfos_file_system hadoop_files = {
    .look = tfos__io_hadoop_look,
    .list = list,
    .open_reader = tfos__io_hadoop_open_reader,
    .open_writer = tfos__io_hadoop_open_writer,
    .make_folder = make_folder,
    .rename = rename_file,
    .remove = remove_file,
};

struct tfos_file_system *tfos_file_system_of(const char *name)
{
    bool is_elsewhere = tfos_file_name_path_offset(name) > 0 && !tfos__io_file_name_is_local(name);
    return is_elsewhere ? &hadoop_files : &tfos__io_local_files;
}
