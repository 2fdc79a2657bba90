// SPDX-License-Identifier: Apache-2.0
// One JVM a process, which lasts until that ends. It is loaded, not linked. A thread that calls is
// attached as a daemon, and detached when it ends; one that Java has attached is left alone.
// Invariant: in a process that was forked after the JVM began to start, nothing here is locked or
// called: its threads are not there.
#include "io/jvm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/file_system.h>
#include <tfos/fork.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/class_path.h"

#define LIBRARY "libjvm.so"
#define MOST_OPTIONS 64
#define FRAME_SIZE 32 // references that a call needs
#define NOBODY (-1)

typedef int32_t get_vms_function(struct tfos__java_vm **vms, int32_t capacity, int32_t *count);
typedef int32_t create_function(struct tfos__java_vm **vm, struct tfos__jni **env,
                                struct tfos__java_vm_arguments *arguments);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int64_t owner =
    NOBODY; // fork generation of the process that has, or starts, the JVM
static struct tfos__java_vm *_Atomic vm; // set once all below is
static pthread_key_t attached;           // has the threads that were attached here
static void *string_class, *string_init, *string_get_bytes;

static void detach(void *env)
{
    struct tfos__java_vm *here = atomic_load(&vm);
    (void)env;
    if (here && tfos__io_jvm_is_here())
        here->call->DetachCurrentThread(here);
}

bool tfos__io_jvm_is_here(void)
{
    return atomic_load(&vm) && atomic_load(&owner) == (int64_t)tfos_fork_generation();
}

static void find_function(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof(symbol));
}

// The JVM that is there already, or NULL.
static struct tfos__java_vm *find_vm(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    get_vms_function *get_vms = NULL;
    struct tfos__java_vm *found = NULL;
    int32_t count = 0;
    if (library)
        find_function(library, "JNI_GetCreatedJavaVMs", &get_vms);
    if (get_vms && (get_vms(&found, 1, &count) != TFOS__JNI_OK || count == 0))
        found = NULL;
    if (library)
        dlclose(library);
    return found;
}

bool tfos_hadoop_is_configured(void)
{
    return find_vm() || tfos__io_class_path_is_named();
}

// ---- starting one

// The options of LIBHDFS_OPTS, which `copy` has, come last: they override the others.
static int fill_options(struct tfos__java_vm_option options[MOST_OPTIONS], char *class_path,
                        char *copy)
{
    // Signals are the program's: -Xrs. Files of statistics are for servers. The library
    // reports what fails, without Java's stacks before it; and setting Log4j 2 up takes long.
    static const char *const fixed[] = {
        "-Xrs",
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Dlog4j2.loggerContextFactory=org.apache.logging.log4j.simple.SimpleLoggerContextFactory",
        "-Dorg.apache.logging.log4j.simplelog.level=OFF"};
    int count = 0;
    char *rest = copy, *word;
    options[count++].text = class_path;
    for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
        options[count++].text = fixed[i];
    while (count < MOST_OPTIONS && (word = strsep(&rest, " \t")))
        if (word[0] != '\0')
            options[count++].text = word;
    return count;
}

static enum tfos_status create_with(create_function *create, char *class_path, char *more,
                                    struct tfos__java_vm **made, struct tfos__jni **env,
                                    struct tfos_error *err)
{
    struct tfos__java_vm_option options[MOST_OPTIONS] = {{0}};
    struct tfos__java_vm_arguments arguments = {
        TFOS__JNI_VERSION, fill_options(options, class_path, more), options, true};
    struct sigaction user;
    // It takes this signal for itself, from whoever has it.
    sigaction(SIGUSR2, NULL, &user);
    int32_t code = create(made, env, &arguments);
    if (user.sa_handler != SIG_DFL)
        sigaction(SIGUSR2, &user, NULL);
    if (code != TFOS__JNI_OK)
        return tfos__fail(
            err, TFOS_UNSUPPORTED,
            "hadoop: Java's virtual machine does not start (JNI error %d): the standard "
            "error output may say why; LIBHDFS_OPTS has its options, such as -Xmx512m",
            (int)code);
    return TFOS_OK;
}

static enum tfos_status create(const char *library_path, const char *class_path,
                               struct tfos__java_vm **made, struct tfos__jni **env,
                               struct tfos_error *err)
{
    void *library = dlopen(library_path, RTLD_NOW);
    create_function *create_vm = NULL;
    if (library)
        find_function(library, "JNI_CreateJavaVM", &create_vm);
    if (!create_vm)
        return tfos__fail(err, TFOS_UNSUPPORTED, "hadoop: cannot load %s: %s", library_path,
                          library ? "it is no Java" : dlerror());
    char *option = tfos__format("-Djava.class.path=%s", class_path);
    char *more = tfos__strdup(getenv("LIBHDFS_OPTS") ? getenv("LIBHDFS_OPTS") : "");
    enum tfos_status status = option && more ? create_with(create_vm, option, more, made, env, err)
                                             : tfos__no_memory(err, "hadoop", "a class path");
    tfos__free(more);
    tfos__free(option);
    return status;
}

// What Java's libraries print would be between what the program prints.
static void print_to_stderr(struct tfos__jni *env)
{
    static const char type[] = "Ljava/io/PrintStream;", setter[] = "(Ljava/io/PrintStream;)V";
    void *class = env->call->FindClass(env, "java/lang/System");
    void *field = class ? env->call->GetStaticFieldID(env, class, "err", type) : NULL;
    void *method = field ? env->call->GetStaticMethodID(env, class, "setOut", setter) : NULL;
    if (method) {
        union tfos__jni_value out = {.l = env->call->GetStaticObjectField(env, class, field)};
        env->call->CallStaticVoidMethodA(env, class, method, &out);
    }
    env->call->ExceptionClear(env);
}

static enum tfos_status start_vm(struct tfos__java_vm **made, struct tfos_error *err)
{
    char *class_path = NULL, *library = NULL;
    struct tfos__jni *env = NULL;
    enum tfos_status status = tfos__io_jvm_library_find(&library, err);
    if (status == TFOS_OK)
        status = tfos__io_class_path_find(&class_path, err);
    if (status == TFOS_OK)
        status = create(library, class_path, made, &env, err);
    if (status == TFOS_OK) {
        pthread_setspecific(attached, env);
        print_to_stderr(env);
    }
    tfos__free(library);
    tfos__free(class_path);
    return status;
}

static enum tfos_status attach(struct tfos__java_vm *here, struct tfos__jni **env,
                               struct tfos_error *err)
{
    int32_t code = here->call->GetEnv(here, env, TFOS__JNI_VERSION);
    if (code == TFOS__JNI_DETACHED) {
        code = here->call->AttachCurrentThreadAsDaemon(here, env, NULL);
        if (code == TFOS__JNI_OK)
            pthread_setspecific(attached, *env);
    }
    return code == TFOS__JNI_OK ? TFOS_OK
                                : tfos__fail(err, TFOS_IO,
                                             "hadoop: cannot attach a thread to the JVM (JNI "
                                             "error %d)",
                                             (int)code);
}

// What texts need.
static bool find_strings(struct tfos__jni *env)
{
    string_class = tfos__io_jvm_find_class(env, "java/lang/String");
    if (string_class)
        string_init =
            env->call->GetMethodID(env, string_class, "<init>", "([BLjava/lang/String;)V");
    if (string_init)
        string_get_bytes =
            env->call->GetMethodID(env, string_class, "getBytes", "(Ljava/lang/String;)[B");
    return string_get_bytes;
}

static enum tfos_status start(struct tfos_error *err)
{
    struct tfos__java_vm *made = find_vm();
    struct tfos__jni *env = NULL;
    static bool has_key;
    if (!has_key && pthread_key_create(&attached, detach) != 0)
        return tfos__fail(err, TFOS_NO_MEMORY, "hadoop: the process has too many thread keys");
    has_key = true;
    if (!made)
        TFOS__TRY(start_vm(&made, err));
    TFOS__TRY(attach(made, &env, err));
    if (!find_strings(env)) {
        env->call->ExceptionClear(env);
        return tfos__fail(err, TFOS_UNSUPPORTED, "hadoop: this JVM lacks classes of Java");
    }
    atomic_store(&vm, made);
    return TFOS_OK;
}

static enum tfos_status start_once(struct tfos_error *err)
{
    int64_t seen = NOBODY, mine = (int64_t)tfos_fork_generation();
    if (!atomic_compare_exchange_strong(&owner, &seen, mine) && seen != mine)
        return tfos__fail(err, TFOS_INVALID,
                          "hadoop: this process was forked from one that has used Hadoop's files, "
                          "and the JVM has not come along: start it as a process of its own "
                          "(Python: multiprocessing's method \"spawn\")");
    if (atomic_load(&vm))
        return TFOS_OK;
    pthread_mutex_lock(&lock);
    enum tfos_status status = atomic_load(&vm) ? TFOS_OK : start(err);
    if (status < 0)
        atomic_store(&owner, NOBODY);
    pthread_mutex_unlock(&lock);
    return status;
}

enum tfos_status tfos__io_jvm_enter(struct tfos__jni **env, struct tfos_error *err)
{
    struct tfos__jni *mine = NULL;
    TFOS__TRY(start_once(err));
    TFOS__TRY(attach(atomic_load(&vm), &mine, err));
    if (mine->call->PushLocalFrame(mine, FRAME_SIZE) != TFOS__JNI_OK) {
        mine->call->ExceptionClear(mine);
        return tfos__no_memory(err, "hadoop", "references in the JVM");
    }
    *env = mine;
    return TFOS_OK;
}

void tfos__io_jvm_leave(struct tfos__jni *env)
{
    env->call->ExceptionClear(env);
    env->call->PopLocalFrame(env, NULL);
}

// ---- objects

void *tfos__io_jvm_find_class(struct tfos__jni *env, const char *name)
{
    void *class = env->call->FindClass(env, name);
    return class ? env->call->NewGlobalRef(env, class) : NULL;
}

// Java's own form of UTF-8 is another, so text goes as bytes.
void *tfos__io_jvm_make_string(struct tfos__jni *env, const char *text)
{
    int32_t size = (int32_t)strlen(text);
    union tfos__jni_value arguments[2];
    arguments[0].l = env->call->NewByteArray(env, size);
    if (!arguments[0].l)
        return NULL;
    env->call->SetByteArrayRegion(env, arguments[0].l, 0, size, text);
    arguments[1].l = env->call->NewStringUTF(env, "UTF-8");
    return arguments[1].l ? env->call->NewObjectA(env, string_class, string_init, arguments) : NULL;
}

char *tfos__io_jvm_get_text(struct tfos__jni *env, void *string)
{
    union tfos__jni_value charset = {.l = string ? env->call->NewStringUTF(env, "UTF-8") : NULL};
    void *bytes =
        charset.l ? env->call->CallObjectMethodA(env, string, string_get_bytes, &charset) : NULL;
    if (!bytes)
        return NULL;
    int32_t size = env->call->GetArrayLength(env, bytes);
    char *text = tfos__alloc((size_t)size + 1, 1);
    if (text)
        env->call->GetByteArrayRegion(env, bytes, 0, size, text);
    return text;
}
