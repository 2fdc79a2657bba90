// SPDX-License-Identifier: Apache-2.0
// What an exception stands for follows from the first class that is known: of the exception, of
// those that it derives from, and then of its causes. What a name node has thrown is named in the
// RemoteException that it comes in.
#include "io/java_exception.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "io/jvm.h"

#define MOST_CAUSES 8
#define REMOTE "org.apache.hadoop.ipc.RemoteException"

struct meaning {
    const char *class; ///< its end, behind a "." or "$"
    enum tfos_status status;
    int os_errno;
    const char *words;
};

static const struct meaning meanings[] = {
    {"FileNotFoundException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"NoSuchFileException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"PathNotFoundException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"AccessControlException", TFOS_DENIED, EACCES, "permission is denied"},
    {"AccessDeniedException", TFOS_DENIED, EACCES, "permission is denied"},
    {"PathPermissionException", TFOS_DENIED, EACCES, "permission is denied"},
    {"AuthorizationException", TFOS_DENIED, EACCES, "permission is denied"},
    {"InvalidToken", TFOS_DENIED, EACCES, "the delegation token has expired or is not valid"},
    {"KerberosAuthException", TFOS_DENIED, EACCES, "Kerberos refuses the login"},
    {"GSSException", TFOS_DENIED, EACCES, "there is no valid Kerberos ticket (kinit gets one)"},
    {"SaslException", TFOS_DENIED, EACCES, "the server refuses the login"},
    {"AuthenticationException", TFOS_DENIED, EACCES, "the server refuses the login"},
    {"FileAlreadyExistsException", TFOS_IO, EEXIST, "it exists already"},
    {"PathExistsException", TFOS_IO, EEXIST, "it exists already"},
    {"PathIsNotEmptyDirectoryException", TFOS_IO, ENOTEMPTY, "the folder is not empty"},
    {"DirectoryNotEmptyException", TFOS_IO, ENOTEMPTY, "the folder is not empty"},
    {"ParentNotDirectoryException", TFOS_IO, ENOTDIR, "what it is in is no folder"},
    {"PathIsNotDirectoryException", TFOS_IO, ENOTDIR, "it is no folder"},
    {"PathIsDirectoryException", TFOS_IO, EISDIR, "it is a folder"},
    {"SafeModeException", TFOS_BUSY, EBUSY,
     "the name node is in safe mode, in which nothing can be written: wait until it has left it "
     "(hdfs dfsadmin -safemode get)"},
    {"StandbyException", TFOS_BUSY, EBUSY, "the name node is a standby one"},
    {"RetriableException", TFOS_BUSY, EBUSY, "the server asks to try again later"},
    {"AlreadyBeingCreatedException", TFOS_BUSY, EBUSY, "another process writes it"},
    {"RecoveryInProgressException", TFOS_BUSY, EBUSY, "what its last writer left is recovered"},
    {"LeaseExpiredException", TFOS_IO, ESTALE, "another process has taken it over or deleted it"},
    {"DSQuotaExceededException", TFOS_IO, EDQUOT, "the quota of space is exceeded"},
    {"NSQuotaExceededException", TFOS_IO, EDQUOT, "the quota of names is exceeded"},
    {"QuotaExceededException", TFOS_IO, EDQUOT, "a quota is exceeded"},
    {"ChecksumException", TFOS_CORRUPT, 0, "a checksum is wrong"},
    {"BlockMissingException", TFOS_IO, EIO, "no data node that is alive has one of its blocks"},
    {"CannotObtainBlockLengthException", TFOS_IO, EIO, "its last block cannot be read"},
    {"UnsupportedFileSystemException", TFOS_UNSUPPORTED, 0,
     "Hadoop knows no file system of this scheme"},
    {"ClassNotFoundException", TFOS_UNSUPPORTED, 0,
     "a jar is missing (CLASSPATH, or HADOOP_OPTIONAL_TOOLS, adds it)"},
    {"NoClassDefFoundError", TFOS_UNSUPPORTED, 0,
     "a jar is missing (CLASSPATH, or HADOOP_OPTIONAL_TOOLS, adds it)"},
    {"UnsupportedOperationException", TFOS_UNSUPPORTED, ENOTSUP, "the file system cannot do that"},
    {"UnknownHostException", TFOS_IO, EHOSTUNREACH, "there is no such host"},
    {"NoRouteToHostException", TFOS_IO, EHOSTUNREACH, "the host cannot be reached"},
    {"ConnectException", TFOS_IO, ECONNREFUSED, "the server does not answer"},
    {"SocketTimeoutException", TFOS_TIMEOUT, ETIMEDOUT, "the server has not answered in time"},
    {"ConnectTimeoutException", TFOS_TIMEOUT, ETIMEDOUT, "the server has not answered in time"},
    {"EOFException", TFOS_IO, ENODATA, "it ends too early"},
    {"OutOfMemoryError", TFOS_NO_MEMORY, ENOMEM, "the JVM has no memory (LIBHDFS_OPTS=-Xmx1g)"},
    {"InvalidPathException", TFOS_INVALID, EINVAL, "it is no valid name"},
    {"InvalidPathNameException", TFOS_INVALID, EINVAL, "it is no valid name"},
    {"PathComponentTooLongException", TFOS_INVALID, ENAMETOOLONG, "its name is too long"},
};

// What says little, and often has a cause that says more.
static const struct meaning vague = {"IllegalArgumentException", TFOS_INVALID, EINVAL,
                                     "Hadoop does not take it"};

static void *get_name, *get_message, *get_cause, *remote_get_class_name;

static void *find_method(struct tfos__jni *env, const char *class, const char *name,
                         const char *signature)
{
    void *found = env->call->FindClass(env, class);
    return found ? env->call->GetMethodID(env, found, name, signature) : NULL;
}

bool tfos__io_java_exceptions_find(struct tfos__jni *env)
{
    static const char text[] = "()Ljava/lang/String;", throwable[] = "java/lang/Throwable";
    get_name = find_method(env, "java/lang/Class", "getName", text);
    if (get_name)
        get_message = find_method(env, throwable, "getMessage", text);
    if (get_message)
        get_cause = find_method(env, throwable, "getCause", "()Ljava/lang/Throwable;");
    if (!get_cause)
        return false;
    remote_get_class_name =
        find_method(env, "org/apache/hadoop/ipc/RemoteException", "getClassName", text);
    env->call->ExceptionClear(env); // Hadoop is missed by whoever looks for more of it
    return true;
}

// What a method without arguments gives; NULL also for an exception of its own, which is cleared.
static void *ask(struct tfos__jni *env, void *object, void *method)
{
    void *answer = env->call->CallObjectMethodA(env, object, method, NULL);
    env->call->ExceptionClear(env);
    return answer;
}

static char *ask_text(struct tfos__jni *env, void *object, void *method)
{
    char *text = tfos__io_jvm_get_text(env, ask(env, object, method));
    env->call->ExceptionClear(env);
    return text;
}

static bool is_named(const char *name, const struct meaning *meaning)
{
    size_t size = strlen(name), end = strlen(meaning->class);
    return size > end && strchr(".$", name[size - end - 1]) &&
           strcmp(name + size - end, meaning->class) == 0;
}

static const struct meaning *meaning_of_name(const char *name, bool takes_vague)
{
    for (size_t i = 0; name && i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (is_named(name, &meanings[i]))
            return &meanings[i];
    return name && takes_vague && is_named(name, &vague) ? &vague : NULL;
}

static const struct meaning *meaning_of_class(struct tfos__jni *env, void *exception,
                                              bool takes_vague)
{
    const struct meaning *meaning = NULL;
    void *class = env->call->GetObjectClass(env, exception);
    for (; class && !meaning; class = env->call->GetSuperclass(env, class)) {
        char *name = ask_text(env, class, get_name);
        if (name && strcmp(name, REMOTE) == 0 && remote_get_class_name) {
            tfos__free(name);
            name = ask_text(env, exception, remote_get_class_name);
        }
        meaning = meaning_of_name(name, takes_vague);
        tfos__free(name);
    }
    return meaning;
}

// Its message without the stack that a server has put behind it, or, where it has none, its class.
static char *message_of(struct tfos__jni *env, void *exception)
{
    char *text = ask_text(env, exception, get_message);
    if (!text || text[0] == '\0') {
        tfos__free(text);
        text = ask_text(env, env->call->GetObjectClass(env, exception), get_name);
    }
    char *stack = text ? strstr(text, "\n\tat ") : NULL;
    if (stack)
        *stack = '\0';
    for (char *at = text; at && *at != '\0'; at++)
        if (*at == '\n' || *at == '\t')
            *at = ' ';
    return text;
}

static enum tfos_status explain(struct tfos__jni *env, void *exception, const char *what,
                                struct tfos_error *err)
{
    const struct meaning *meaning = meaning_of_class(env, exception, false);
    void *cause = exception;
    for (int i = 0; i < MOST_CAUSES && cause && !meaning; i++) {
        cause = ask(env, cause, get_cause);
        if (cause)
            meaning = meaning_of_class(env, cause, false);
    }
    if (!meaning) {
        cause = exception;
        meaning = meaning_of_class(env, exception, true);
    }
    char *message = message_of(env, cause);
    enum tfos_status status = meaning ? meaning->status : TFOS_IO;
    tfos__fail(err, status, "hadoop: %s: %s%s%s%s", what, meaning ? meaning->words : "",
               meaning ? " (" : "", message ? message : "an exception without a text",
               meaning ? ")" : "");
    if (err && meaning)
        err->os_errno = meaning->os_errno;
    tfos__free(message);
    return status;
}

enum tfos_status tfos__io_java_check(struct tfos__jni *env, struct tfos_error *err,
                                     const char *format, ...)
{
    char what[2048];
    struct tfos__bounded_text text = {what, sizeof(what), 0};
    va_list arguments;
    void *exception = env->call->ExceptionOccurred(env);
    if (!exception)
        return TFOS_OK;
    env->call->ExceptionClear(env);
    va_start(arguments, format);
    tfos__bounded_text_append_list(&text, format, arguments);
    va_end(arguments);
    return explain(env, exception, what, err);
}
