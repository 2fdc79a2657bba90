// SPDX-License-Identifier: Apache-2.0
// The status of an exception follows from the first class that is known: of the exception, of
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

#define NO_PERMISSION                                                                              \
    "permission is denied: its owner can give it (hdfs dfs -chmod), and HADOOP_USER_NAME or "      \
    "kinit "                                                                                       \
    "says who asks"
#define NO_TOKEN                                                                                   \
    "the delegation token has expired or is not valid: start the application again, with "         \
    "--principal and --keytab if it is to run longer than tokens live"
#define NO_LOGIN "the server refuses the login: kinit gets a Kerberos ticket, klist shows it"

static const struct meaning meanings[] = {
    {"FileNotFoundException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"NoSuchFileException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"PathNotFoundException", TFOS_NOT_FOUND, ENOENT, "it does not exist"},
    {"AccessControlException", TFOS_DENIED, EACCES, NO_PERMISSION},
    {"AccessDeniedException", TFOS_DENIED, EACCES, NO_PERMISSION},
    {"PathPermissionException", TFOS_DENIED, EACCES, NO_PERMISSION},
    {"AuthorizationException", TFOS_DENIED, EACCES, NO_PERMISSION},
    {"InvalidToken", TFOS_DENIED, EACCES, NO_TOKEN},
    {"KerberosAuthException", TFOS_DENIED, EACCES, "Kerberos refuses the login"},
    {"GSSException", TFOS_DENIED, EACCES, "there is no valid Kerberos ticket (kinit gets one)"},
    {"SaslException", TFOS_DENIED, EACCES, NO_LOGIN},
    {"AuthenticationException", TFOS_DENIED, EACCES, NO_LOGIN},
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
    {"AlreadyBeingCreatedException", TFOS_BUSY, EBUSY,
     "another process writes it: wait until that has closed it or, if it was killed, for a minute "
     "(hdfs debug recoverLease -path FILE ends what it left)"},
    {"RecoveryInProgressException", TFOS_BUSY, EAGAIN,
     "what its last writer left is being recovered: try again in some seconds"},
    {"LeaseExpiredException", TFOS_IO, ESTALE,
     "another process has taken it over or deleted it: give each writer a name of its own"},
    {"DSQuotaExceededException", TFOS_IO, EDQUOT,
     "the quota of space is exceeded: delete files there, or have it raised (hdfs dfsadmin "
     "-setSpaceQuota)"},
    {"NSQuotaExceededException", TFOS_IO, EDQUOT,
     "the quota of names is exceeded: delete files there, or have it raised (hdfs dfsadmin "
     "-setQuota)"},
    {"QuotaExceededException", TFOS_IO, EDQUOT,
     "a quota is exceeded: delete files there, or have it raised (hdfs dfsadmin)"},
    {"ChecksumException", TFOS_CORRUPT, 0,
     "a checksum is wrong in each copy of a block: restore the file (hdfs fsck FILE says more)"},
    {"BlockMissingException", TFOS_IO, EIO,
     "no data node that is alive has a good copy of one of its blocks: start the node again, or "
     "restore the file (hdfs fsck FILE -blocks -locations says which)"},
    {"CannotObtainBlockLengthException", TFOS_IO, EIO,
     "the data nodes of its last block, which is not complete, do not answer: start them again, or "
     "end its writing (hdfs debug recoverLease -path FILE)"},
    {"UnsupportedFileSystemException", TFOS_UNSUPPORTED, 0,
     "Hadoop knows no file system of this scheme"},
    {"ClassNotFoundException", TFOS_UNSUPPORTED, 0,
     "a jar is missing (CLASSPATH, or HADOOP_OPTIONAL_TOOLS, adds it)"},
    {"NoClassDefFoundError", TFOS_UNSUPPORTED, 0,
     "a jar is missing (CLASSPATH, or HADOOP_OPTIONAL_TOOLS, adds it)"},
    {"UnsupportedOperationException", TFOS_UNSUPPORTED, ENOTSUP, "the file system cannot do that"},
    {"UnknownHostException", TFOS_IO, EHOSTUNREACH, "there is no such host"},
    {"NoRouteToHostException", TFOS_IO, EHOSTUNREACH, "the host cannot be reached"},
    {"ConnectException", TFOS_IO, ECONNREFUSED,
     "the server does not answer: see that it runs, and that the address is right"},
    {"SocketTimeoutException", TFOS_TIMEOUT, ETIMEDOUT, "the server has not answered in time"},
    {"ConnectTimeoutException", TFOS_TIMEOUT, ETIMEDOUT, "the server has not answered in time"},
    {"EOFException", TFOS_IO, ENODATA, "it ends too early"},
    {"OutOfMemoryError", TFOS_NO_MEMORY, ENOMEM, "the JVM has no memory (LIBHDFS_OPTS=-Xmx1g)"},
    {"InvalidPathException", TFOS_INVALID, EINVAL, "it is no valid name"},
    {"InvalidPathNameException", TFOS_INVALID, EINVAL, "it is no valid name"},
    {"PathComponentTooLongException", TFOS_INVALID, ENAMETOOLONG, "its name is too long"},
};

// Of exceptions whose class says nothing, or something else: what their messages contain. In
// `class`.
static const struct meaning messages[] = {
    {"End of File Exception between local host", TFOS_IO, ECONNRESET,
     "the server has closed the connection: see that it runs, and try again"},
    {" are bad. Aborting", TFOS_IO, EIO,
     "all data nodes that have taken a part of it have failed: start them again (hdfs dfsadmin "
     "-report shows them), and write it again"},
    {"could only be written to 0 of", TFOS_IO, ENOSPC,
     "no data node takes its blocks, since they are full or not there (hdfs dfsadmin -report)"},
    {"Failed to replace a bad datanode", TFOS_IO, EIO,
     "a data node has failed, and there is no other in its place: write it again, or set "
     "dfs.client.block.write.replace-datanode-on-failure.policy to NEVER for so few nodes"},
    {"does not have enough number of replicas", TFOS_IO, EIO,
     "the data nodes have not reported its last block in time: write it again"},
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

static const struct meaning *meaning_of_message(const char *message)
{
    for (size_t i = 0; message && i < sizeof(messages) / sizeof(messages[0]); i++)
        if (strstr(message, messages[i].class))
            return &messages[i];
    return NULL;
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
    if (meaning_of_message(message))
        meaning = meaning_of_message(message);
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
