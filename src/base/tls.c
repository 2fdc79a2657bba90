// SPDX-License-Identifier: Apache-2.0
// The handshake is accepted only if the pre-shared key was used: a side that has no certificates to
// check would otherwise accept any peer that offers one. The socket is reached through a BIO of our
// own, because OpenSSL's raises SIGPIPE.
#include "base/tls.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fail.h"
#include "base/memory.h"

// AES-GCM's keys wear out after 2^24.5 records (RFC 8446, 5.5); a feed of some hundred gigabytes
// gets there.
#define RECORDS_PER_KEY (1u << 23)
#define AHEAD_SIZE (128u << 10) // read at once where much comes

static const unsigned char AES_128_GCM_SHA256[2] = {0x13, 0x01};

struct tfos__tls {
    int fd; // borrowed
    char *cluster_id;
    unsigned char key[TFOS__KEY_SIZE]; // wiped after the handshake
    SSL_CTX *context;
    BIO_METHOD *method;
    SSL *ssl;
    short read_event;
    short write_event;
    uint64_t records_written; // with the present key, at least
    int os_errno;             // of the socket's last failure, 0 for none
    bool at_eof;
    bool offered_other_id;
    unsigned char *ahead; // owned: bytes of the socket that OpenSSL has not asked for; NULL: none
    size_t ahead_begin;
    size_t ahead_end;
};

static int receive(BIO *bio, void *data, size_t size, size_t *done)
{
    struct tfos__tls *tls = BIO_get_data(bio);
    ssize_t received;
    do
        received = recv(tls->fd, data, size, MSG_DONTWAIT);
    while (received < 0 && errno == EINTR);
    if (received > 0) {
        *done = (size_t)received;
        return 1;
    }
    if (received == 0)
        tls->at_eof = true;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        BIO_set_retry_read(bio);
    else
        tls->os_errno = errno;
    return 0;
}

static int socket_read(BIO *bio, char *data, size_t size, size_t *done)
{
    struct tfos__tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (!tls->ahead)
        return receive(bio, data, size, done);
    if (tls->ahead_begin == tls->ahead_end) {
        tls->ahead_begin = tls->ahead_end = 0;
        if (receive(bio, tls->ahead, AHEAD_SIZE, &tls->ahead_end) == 0)
            return 0;
    }
    size_t given = tls->ahead_end - tls->ahead_begin;
    if (given > size)
        given = size;
    memcpy(data, tls->ahead + tls->ahead_begin, given);
    tls->ahead_begin += given;
    *done = given;
    return 1;
}

static int socket_write(BIO *bio, const char *data, size_t size, size_t *done)
{
    struct tfos__tls *tls = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent;
    do
        sent = send(tls->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0) {
        *done = (size_t)sent;
        return 1;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        BIO_set_retry_write(bio);
    else
        tls->os_errno = errno;
    return 0;
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// The key as the session that TLS 1.3 takes an external key for.
static SSL_SESSION *make_session(SSL *ssl)
{
    const struct tfos__tls *tls = SSL_get_app_data(ssl);
    const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, AES_128_GCM_SHA256);
    SSL_SESSION *session = SSL_SESSION_new();
    if (!cipher || !session || !SSL_SESSION_set1_master_key(session, tls->key, sizeof(tls->key)) ||
        !SSL_SESSION_set_cipher(session, cipher) ||
        !SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION)) {
        SSL_SESSION_free(session);
        return NULL;
    }
    return session;
}

static int offer_key(SSL *ssl, const EVP_MD *digest, const unsigned char **id, size_t *id_size,
                     SSL_SESSION **session)
{
    struct tfos__tls *tls = SSL_get_app_data(ssl);
    *session = NULL;
    if (digest && !EVP_MD_is_a(digest, "SHA256"))
        return 1;
    *session = make_session(ssl);
    *id = (const unsigned char *)tls->cluster_id;
    *id_size = strlen(tls->cluster_id);
    return *session ? 1 : 0;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t id_size, SSL_SESSION **session)
{
    struct tfos__tls *tls = SSL_get_app_data(ssl);
    *session = NULL;
    if (id_size != strlen(tls->cluster_id) || memcmp(id, tls->cluster_id, id_size) != 0) {
        tls->offered_other_id = true;
        return 1; // no session: the handshake then fails for want of a certificate
    }
    *session = make_session(ssl);
    return *session ? 1 : 0;
}

static enum tfos_status fail_openssl(struct tfos_error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    return tfos__fail(err, TFOS_IO, "tls: cannot %s: %s", what,
                      reason ? reason : "no reason given");
}

static enum tfos_status make_context(struct tfos__tls *tls, bool is_server, struct tfos_error *err)
{
    tls->context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());
    if (!tls->context || !SSL_CTX_set_min_proto_version(tls->context, TLS1_3_VERSION) ||
        !SSL_CTX_set_max_proto_version(tls->context, TLS1_3_VERSION) ||
        !SSL_CTX_set_ciphersuites(tls->context, "TLS_AES_128_GCM_SHA256") ||
        !SSL_CTX_set_num_tickets(tls->context, 0))
        return fail_openssl(err, "set up a context");
    SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
    SSL_CTX_clear_options(tls->context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    // Without it each record is read from the socket in two steps, its head and its body.
    SSL_CTX_set_read_ahead(tls->context, 1);
    SSL_CTX_set_mode(tls->context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                       SSL_MODE_RELEASE_BUFFERS);
    if (is_server) {
        SSL_CTX_set_psk_find_session_callback(tls->context, find_key);
    } else {
        // With no trusted certificates, this refuses every server that shows one in place of the
        // key.
        SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_psk_use_session_callback(tls->context, offer_key);
    }
    return TFOS_OK;
}

static enum tfos_status make_stream(struct tfos__tls *tls, struct tfos_error *err)
{
    tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "tfos socket");
    if (!tls->method || !BIO_meth_set_read_ex(tls->method, socket_read) ||
        !BIO_meth_set_write_ex(tls->method, socket_write) ||
        !BIO_meth_set_ctrl(tls->method, socket_control))
        return fail_openssl(err, "set up a stream");
    tls->ssl = SSL_new(tls->context);
    BIO *bio = BIO_new(tls->method);
    if (!tls->ssl || !bio) {
        BIO_free(bio);
        return fail_openssl(err, "set up a session");
    }
    BIO_set_data(bio, tls);
    BIO_set_init(bio, 1);
    SSL_set_bio(tls->ssl, bio, bio);
    SSL_set_app_data(tls->ssl, tls);
    return TFOS_OK;
}

enum tfos_status tfos__tls_open(int fd, bool is_server, const struct tfos__identity *identity,
                                struct tfos__tls **out, struct tfos_error *err)
{
    struct tfos__tls *tls = tfos__alloc(1, sizeof(*tls));
    if (!tls)
        return tfos__no_memory(err, "tls", "a session");
    tls->fd = fd;
    tls->read_event = POLLIN;
    tls->write_event = POLLOUT;
    memcpy(tls->key, identity->key, sizeof(tls->key));
    tls->cluster_id = tfos__strdup(identity->cluster_id);
    ERR_clear_error();
    enum tfos_status status = tls->cluster_id ? make_context(tls, is_server, err)
                                              : tfos__no_memory(err, "tls", "a cluster's id");
    if (status == TFOS_OK)
        status = make_stream(tls, err);
    if (status != TFOS_OK) {
        tfos__tls_close(tls);
        return status;
    }
    if (is_server)
        SSL_set_accept_state(tls->ssl);
    else
        SSL_set_connect_state(tls->ssl);
    *out = tls;
    return TFOS_OK;
}

enum tfos_status tfos__tls_expect_bulk(struct tfos__tls *tls, struct tfos_error *err)
{
    tls->ahead = tfos__realloc(NULL, AHEAD_SIZE, 1);
    if (!tls->ahead)
        return tfos__no_memory(err, "tls", "a session");
    // OpenSSL's own reading ahead moves all that it holds to the front for each record.
    SSL_set_read_ahead(tls->ssl, 0);
    SSL_clear_mode(tls->ssl, SSL_MODE_RELEASE_BUFFERS);
    return TFOS_OK;
}

// What every call does with a result that is not success: AGAIN, or the ways in which a connection
// ends. `event` gets what to wait for. OK means a violation of the protocol, which only the caller
// can name.
static enum tfos_status status_of(struct tfos__tls *tls, int result, short *event,
                                  struct tfos_error *err)
{
    int reason = SSL_get_error(tls->ssl, result);
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) {
        *event = reason == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return TFOS_AGAIN;
    }
    unsigned long code = ERR_peek_error();
    if (code != 0 && ERR_GET_REASON(code) == ERR_R_MALLOC_FAILURE)
        return tfos__no_memory(err, "tls", "a record");
    if (tls->os_errno != 0) {
        errno = tls->os_errno;
        bool is_gone = errno == ECONNRESET || errno == EPIPE;
        return tfos__fail_errno(err, is_gone ? TFOS_CLOSED : TFOS_IO, "connection lost");
    }
    if (tls->at_eof || reason == SSL_ERROR_ZERO_RETURN)
        return tfos__fail(err, TFOS_CLOSED, "the peer closed the connection");
    return TFOS_OK;
}

static enum tfos_status refuse(const struct tfos__tls *tls, struct tfos_error *err)
{
    unsigned long code = ERR_peek_error();
    int reason = ERR_GET_REASON(code);
    const char *text = ERR_reason_error_string(code);
    if (tls->offered_other_id)
        return tfos__fail(err, TFOS_DENIED, "the other side belongs to another cluster");
    bool is_alert = reason >= SSL_AD_REASON_OFFSET;
    if (reason == SSL_R_BINDER_DOES_NOT_VERIFY ||
        reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC || is_alert)
        return tfos__fail(err, TFOS_DENIED, "the other side does not hold this cluster's key (%s)",
                          text ? text : "refused");
    return tfos__fail(err, TFOS_DENIED,
                      "the other side does not speak this cluster's protocol (%s)",
                      text ? text : "no reason given");
}

static enum tfos_status handshake(struct tfos__tls *tls, struct tfos_error *err)
{
    ERR_clear_error();
    int result = SSL_do_handshake(tls->ssl);
    if (result == 1) {
        if (SSL_session_reused(tls->ssl))
            return TFOS_OK;
        return tfos__fail(err, TFOS_DENIED, "the other side did not use this cluster's key");
    }
    enum tfos_status status = status_of(tls, result, &tls->read_event, err);
    return status == TFOS_OK ? refuse(tls, err) : status;
}

// The traffic has keys of its own, and no session is taken up again.
static void forget_key(struct tfos__tls *tls)
{
    SSL_SESSION *session = SSL_get_session(tls->ssl);
    OPENSSL_cleanse(tls->key, sizeof(tls->key));
    if (session)
        SSL_SESSION_set1_master_key(session, tls->key, sizeof(tls->key));
}

enum tfos_status tfos__tls_handshake(struct tfos__tls *tls, struct tfos_error *err)
{
    enum tfos_status status = handshake(tls, err);
    if (status != TFOS_AGAIN)
        forget_key(tls);
    return status;
}

static enum tfos_status fail_record(struct tfos_error *err)
{
    const char *text = ERR_reason_error_string(ERR_peek_error());
    return tfos__fail(err, TFOS_CORRUPT, "a record cannot be read: %s",
                      text ? text : "no reason given");
}

enum tfos_status tfos__tls_read(struct tfos__tls *tls, void *data, size_t size, size_t *done,
                                struct tfos_error *err)
{
    ERR_clear_error();
    int result = SSL_read_ex(tls->ssl, data, size, done);
    if (result == 1) {
        tls->read_event = POLLIN;
        return TFOS_OK;
    }
    enum tfos_status status = status_of(tls, result, &tls->read_event, err);
    return status == TFOS_OK ? fail_record(err) : status;
}

enum tfos_status tfos__tls_write(struct tfos__tls *tls, const void *data, size_t size, size_t *done,
                                 struct tfos_error *err)
{
    ERR_clear_error();
    int result = SSL_write_ex(tls->ssl, data, size, done);
    if (result != 1) {
        enum tfos_status status = status_of(tls, result, &tls->write_event, err);
        return status == TFOS_OK ? fail_record(err) : status;
    }
    tls->write_event = POLLOUT;
    tls->records_written += 1 + *done / SSL3_RT_MAX_PLAIN_LENGTH;
    if (tls->records_written >= RECORDS_PER_KEY) {
        if (!SSL_key_update(tls->ssl, SSL_KEY_UPDATE_NOT_REQUESTED))
            return fail_openssl(err, "change to a new key");
        tls->records_written = 0;
    }
    return TFOS_OK;
}

short tfos__tls_read_event(const struct tfos__tls *tls)
{
    return tls->read_event;
}

short tfos__tls_write_event(const struct tfos__tls *tls)
{
    return tls->write_event;
}

bool tfos__tls_has_pending(const struct tfos__tls *tls)
{
    return SSL_has_pending(tls->ssl) || tls->ahead_begin < tls->ahead_end;
}

void tfos__tls_close(struct tfos__tls *tls)
{
    if (!tls)
        return;
    if (tls->ssl && SSL_is_init_finished(tls->ssl) && tls->os_errno == 0) {
        ERR_clear_error();
        SSL_shutdown(tls->ssl);
    }
    SSL_free(tls->ssl);
    BIO_meth_free(tls->method);
    SSL_CTX_free(tls->context);
    ERR_clear_error();
    tfos__free(tls->cluster_id);
    tfos__free(tls->ahead);
    OPENSSL_cleanse(tls->key, sizeof(tls->key));
    tfos__free(tls);
}
