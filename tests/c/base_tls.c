// SPDX-License-Identifier: Apache-2.0
// Who gets past the handshake: only who holds the same id and key, whatever else it offers.
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <stdlib.h>

#include "channel_pair.h"

static enum tfos_status pump_until_failure(struct tfos__channel *channel, struct tfos_error *err)
{
    int64_t deadline = tfos__deadline(WAIT_MS);
    for (;;) {
        enum tfos_status status = tfos__channel_pump(channel, err);
        if (status < 0)
            return status;
        if (tfos__channel_is_ready(channel))
            return TFOS_OK;
        short events = (short)tfos__channel_events(channel);
        if (tfos__socket_wait(tfos__channel_fd(channel), events, deadline, err) != TFOS_OK)
            fail_msg("%s", err->message);
    }
}

// Both sides must be denied, each with its words, also when the server closes at once, as a server
// does.
static void expect_denied(const struct tfos__identity *near, const struct tfos__identity *far,
                          const char *near_words, const char *far_words)
{
    struct tfos_error err = {0};
    struct channel_pair pair = open_tls_pair(near, far);
    assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
    assert_done(tfos__channel_pump(pair.near, &err));
    assert_int_equal(pump_until_failure(pair.far, &err), TFOS_DENIED);
    if (!strstr(err.message, far_words))
        fail_msg("\"%s\" lacks \"%s\"", err.message, far_words);
    tfos__channel_close(pair.far);
    assert_int_equal(pump_until_failure(pair.near, &err), TFOS_DENIED);
    if (!strstr(err.message, near_words))
        fail_msg("\"%s\" lacks \"%s\"", err.message, near_words);
    assert_non_null(strstr(err.message, "channel: peer: "));
    tfos__channel_close(pair.near);
}

static void another_key_is_denied_on_both_sides(void **state)
{
    (void)state;
    struct tfos__identity near = make_identity("cluster-1", 7);
    struct tfos__identity far = make_identity("cluster-1", 8);
    expect_denied(&near, &far, "the other side does not hold this cluster's key",
                  "the other side does not hold this cluster's key");
}

static void a_key_that_differs_in_its_last_bit_is_denied(void **state)
{
    (void)state;
    struct tfos__identity near = make_identity("cluster-1", 7);
    struct tfos__identity far = near;
    far.key[TFOS__KEY_SIZE - 1] ^= 1;
    expect_denied(&near, &far, "does not hold this cluster's key",
                  "does not hold this cluster's key");
}

static void another_id_is_denied_on_both_sides(void **state)
{
    (void)state;
    struct tfos__identity near = make_identity("cluster-1", 7);
    struct tfos__identity far = make_identity("cluster-2", 7);
    struct tfos__identity longer = make_identity("cluster-10", 7);
    expect_denied(&near, &far, "does not hold this cluster's key",
                  "the other side belongs to another cluster");
    expect_denied(&longer, &near, "does not hold this cluster's key",
                  "the other side belongs to another cluster");
}

// Writes `bytes` again and again until the server has had enough; how much it took.
static size_t feed_garbage(int fd, struct tfos__channel *server, const char *bytes, size_t size,
                           enum tfos_status *status, struct tfos_error *err)
{
    size_t taken = 0;
    for (;;) {
        ssize_t sent = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        taken += sent > 0 ? (size_t)sent : 0;
        *status = tfos__channel_pump(server, err);
        if (*status < 0)
            return taken;
        assert_true(taken < 4u << 20);
    }
}

static void garbage_is_denied_at_once(void **state)
{
    (void)state;
    static const char *const samples[] = {
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "\xff\xff\xff\xff\xff\xff\xff\xff",
        "\x16\x03\x01\xff\xff\x01",             // a record larger than any
        "\x16\x03\x01\x40\x01\x01\xff\xff\xff", // a ClientHello that says 16 MiB
        "\x17\x03\x03\x01\x01\x01",             // application data before any handshake
        "\x15\x03\x01\x01\x02\x02\x28",         // an alert
    };
    struct tfos__identity identity = make_identity("cluster-1", 7);
    for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
        struct tfos_error err = {0};
        int fds[2];
        connect_tcp(fds);
        struct tfos__channel *server = open_channel(fds[1], TFOS__CHANNEL_TLS_SERVER, &identity);
        enum tfos_status status;
        size_t taken = feed_garbage(fds[0], server, samples[i], strlen(samples[i]), &status, &err);
        if (status != TFOS_DENIED)
            fail_msg("sample %zu: %s: %s", i, tfos_status_name(status), err.message);
        assert_true(taken < 256u << 10);
        json_t *message;
        assert_int_equal(tfos__channel_next(server, &message, NULL, NULL, &err), TFOS_DENIED);
        tfos__channel_close(server);
        close(fds[0]);
    }
}

static void a_peer_that_leaves_the_handshake_is_closed(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__identity identity = make_identity("cluster-1", 7);
    struct channel_pair pair = open_tls_pair(&identity, &identity);
    assert_done(tfos__channel_pump(pair.near, &err));
    tfos__channel_close(pair.near);
    assert_int_equal(pump_until_failure(pair.far, &err), TFOS_CLOSED);
    tfos__channel_close(pair.far);
}

// A certificate that its own key signed, as anybody can make one.
static void use_own_certificate(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    assert_non_null(key);
    assert_non_null(certificate);
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(context, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

struct stranger {
    int fd;
    SSL_CTX *context;
    int result;
};

// A TLS 1.3 peer that knows nothing of the key.
static void *run_stranger(void *argument)
{
    struct stranger *stranger = argument;
    SSL *ssl = SSL_new(stranger->context);
    SSL_set_fd(ssl, stranger->fd);
    bool is_client = SSL_CTX_get_ssl_method(stranger->context) == TLS_client_method();
    stranger->result = is_client ? SSL_connect(ssl) : SSL_accept(ssl);
    char byte;
    if (stranger->result == 1)
        stranger->result = SSL_read(ssl, &byte, 1) > 0;
    SSL_free(ssl);
    return NULL;
}

static void meet_stranger(const SSL_METHOD *method, enum tfos__channel_kind kind)
{
    struct tfos_error err;
    int fds[2];
    pthread_t thread;
    connect_unix_pair(fds);
    struct stranger stranger = {.fd = fds[0], .context = SSL_CTX_new(method)};
    assert_non_null(stranger.context);
    SSL_CTX_set_verify(stranger.context, SSL_VERIFY_NONE, NULL);
    use_own_certificate(stranger.context);
    assert_int_equal(pthread_create(&thread, NULL, run_stranger, &stranger), 0);
    struct tfos__identity identity = make_identity("cluster-1", 7);
    struct tfos__channel *channel = open_channel(fds[1], kind, &identity);
    assert_int_equal(pump_until_failure(channel, &err), TFOS_DENIED);
    tfos__channel_close(channel);
    pthread_join(thread, NULL);
    assert_int_not_equal(stranger.result, 1);
    SSL_CTX_free(stranger.context);
    close(fds[0]);
}

static void a_server_with_a_certificate_is_denied(void **state)
{
    (void)state;
    meet_stranger(TLS_server_method(), TFOS__CHANNEL_TLS_CLIENT);
}

static void a_client_without_a_key_is_denied(void **state)
{
    (void)state;
    meet_stranger(TLS_client_method(), TFOS__CHANNEL_TLS_SERVER);
}

static void a_changed_byte_is_corrupt(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__identity identity = make_identity("cluster-1", 7);
    int near[2];
    int far[2];
    connect_unix_pair(near);
    connect_unix_pair(far);
    struct channel_pair pair = {.near = open_channel(near[0], TFOS__CHANNEL_TLS_CLIENT, &identity),
                                .far = open_channel(far[0], TFOS__CHANNEL_TLS_SERVER, &identity)};
    char bytes[16384];
    bool is_sent = false;
    for (;;) {
        enum tfos_status status = tfos__channel_pump(pair.far, &err);
        if (status < 0) {
            assert_int_equal(status, TFOS_CORRUPT);
            break;
        }
        assert_done(tfos__channel_pump(pair.near, &err));
        ssize_t size = recv(far[1], bytes, sizeof(bytes), MSG_DONTWAIT);
        if (size > 0)
            assert_int_equal(write(near[1], bytes, (size_t)size), size);
        size = recv(near[1], bytes, sizeof(bytes), MSG_DONTWAIT);
        if (size > 0 && is_sent)
            bytes[size - 1] ^= 1;
        if (size > 0)
            assert_int_equal(write(far[1], bytes, (size_t)size), size);
        if (tfos__channel_is_ready(pair.far) && !is_sent) {
            assert_done(tfos__channel_queue(pair.near, numbered(1), NULL, 0, &err));
            is_sent = true;
        }
    }
    close_pair(&pair);
    close(near[1]);
    close(far[1]);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(another_key_is_denied_on_both_sides),
    cmocka_unit_test(a_key_that_differs_in_its_last_bit_is_denied),
    cmocka_unit_test(another_id_is_denied_on_both_sides),
    cmocka_unit_test(garbage_is_denied_at_once),
    cmocka_unit_test(a_peer_that_leaves_the_handshake_is_closed),
    cmocka_unit_test(a_server_with_a_certificate_is_denied),
    cmocka_unit_test(a_client_without_a_key_is_denied),
    cmocka_unit_test(a_changed_byte_is_corrupt),
};

TEST_MAIN(cases)
