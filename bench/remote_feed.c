// SPDX-License-Identifier: Apache-2.0
// Batches of 1 MB from one process to another over loopback, as an executor without a trainer feeds
// a node: through TLS into the node's ring, the consumer summing every byte. Against one TCP stream
// in writes of 1 MB that nobody looks at, and one of bare TLS with the same cipher. Rounds of all
// three alternate; the medians are compared. Prints a JSON line for each comparison.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "feed_pair.h"

#define ROUND_BATCHES 2000
#define ROUNDS 5
#define GOAL 0.6
#define TLS_GOAL 0.9

enum way { REMOTE, TLS, TCP, WAYS };

static const char *const names[WAYS] = {"remote", "bare TLS", "TCP"};

/// A producer, and the consumer's end of its connection.
struct pair {
    pid_t pid;
    int go_fd;
    int fd;   // TCP and TLS
    SSL *ssl; // TLS
};

static void require(bool is_done, const char *what)
{
    if (!is_done) {
        perror(what);
        exit(1);
    }
}

static int listen_local(struct sockaddr_in *address)
{
    socklen_t size = sizeof(*address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    require(bind(fd, (struct sockaddr *)address, size) == 0 && listen(fd, 1) == 0 &&
                getsockname(fd, (struct sockaddr *)address, &size) == 0,
            "listen");
    return fd;
}

static unsigned offer_key(SSL *ssl, const char *hint, char *identity, unsigned identity_size,
                          unsigned char *key, unsigned key_size)
{
    (void)ssl;
    (void)hint;
    snprintf(identity, identity_size, PAIR_CLUSTER);
    memset(key, 1, key_size < 32 ? key_size : 32);
    return 32;
}

static unsigned find_key(SSL *ssl, const char *identity, unsigned char *key, unsigned key_size)
{
    (void)ssl;
    (void)identity;
    memset(key, 1, key_size < 32 ? key_size : 32);
    return 32;
}

// TLS as anybody would use it who has only OpenSSL, with the feed's version, cipher and kind of
// key.
static SSL *shake_hands(int fd, bool is_server)
{
    SSL_CTX *context = SSL_CTX_new(is_server ? TLS_server_method() : TLS_client_method());

    SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256");
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_psk_client_callback(context, offer_key);
    SSL_CTX_set_psk_server_callback(context, find_key);
    SSL *ssl = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_fd(ssl, fd);
    require((is_server ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "handshake");
    return ssl;
}

static void write_batches(enum way way, const struct sockaddr_in *address, int go_fd)
{
    static char batch[BATCH_SIZE];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char go;

    memset(batch, 1, sizeof(batch));
    require(connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0, "connect");
    SSL *ssl = way == TLS ? shake_hands(fd, false) : NULL;
    while (read(go_fd, &go, 1) == 1 && go == 'g')
        for (int i = 0; i < ROUND_BATCHES; i++)
            for (size_t sent = 0; sent < sizeof(batch);) {
                int left = (int)(sizeof(batch) - sent);
                ssize_t done = ssl ? SSL_write(ssl, batch + sent, left)
                                   : send(fd, batch + sent, (size_t)left, MSG_NOSIGNAL);
                require(done > 0, "send");
                sent += (size_t)done;
            }
    SSL_free(ssl);
    close(fd);
}

static void read_batches(const struct pair *pair)
{
    static char batch[BATCH_SIZE];

    for (uint64_t left = (uint64_t)ROUND_BATCHES * BATCH_SIZE; left > 0;) {
        size_t most = left < sizeof(batch) ? left : sizeof(batch);
        ssize_t done =
            pair->ssl ? SSL_read(pair->ssl, batch, (int)most) : recv(pair->fd, batch, most, 0);
        require(done > 0, "receive");
        left -= (uint64_t)done;
    }
}

// Forks the producer of one way; the connection is accepted once all are forked.
static struct pair fork_producer(enum way way, const struct sockaddr_in *address)
{
    int go[2];

    require(pipe2(go, O_CLOEXEC) == 0, "pipe");
    struct pair pair = {.pid = fork(), .go_fd = go[1], .fd = -1};
    if (pair.pid == 0) {
        char text[32];
        // Producers forked later keep this one's pipe open.
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(go[1]);
        snprintf(text, sizeof(text), "127.0.0.1:%d", ntohs(address->sin_port));
        if (way == REMOTE)
            produce(NULL, text, go[0], ROUND_BATCHES);
        else
            write_batches(way, address, go[0]);
        _exit(0);
    }
    close(go[0]);
    return pair;
}

static double cpu_s(clockid_t clock)
{
    struct timespec time;

    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// One round: GB/s from the go to the last byte, and what it took of the processors.
static double time_round(struct node *node, enum way way, const struct pair *pair)
{
    clockid_t producer;

    require(clock_getcpuclockid(pair->pid, &producer) == 0, "clock");
    double begin = now_s(), in = cpu_s(CLOCK_PROCESS_CPUTIME_ID), out = cpu_s(producer);
    require(write(pair->go_fd, "g", 1) == 1, "go");
    if (way == REMOTE)
        consume(node, ROUND_BATCHES);
    else
        read_batches(pair);
    double rate = gigabytes_a_second(ROUND_BATCHES, now_s() - begin);
    in = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - in;
    out = cpu_s(producer) - out;
    fprintf(stderr, "%s: %.2f GB/s, CPU: producer %.2f s, consumer %.2f s\n", names[way], rate, out,
            in);
    return rate;
}

static bool has_succeeded(const struct pair *pair)
{
    int status = 0;

    // Closing would not do: producers forked later hold this end too.
    require(write(pair->go_fd, ".", 1) == 1, "end");
    close(pair->go_fd);
    waitpid(pair->pid, &status, 0);
    SSL_free(pair->ssl);
    if (pair->fd >= 0)
        close(pair->fd);
    return status == 0;
}

int main(void)
{
    struct node node = {0};
    struct pair pairs[WAYS];
    struct sockaddr_in addresses[WAYS];
    int listeners[WAYS] = {-1, -1, -1};
    char socket_name[64];
    double rates[WAYS][ROUNDS];
    bool is_good = true;

    snprintf(socket_name, sizeof(socket_name), "tfos-bench-remote-%d", (int)getpid());
    node_open(&node, socket_name);
    addresses[REMOTE].sin_port = htons((uint16_t)tfos__feed_host_port(node.host));
    for (enum way way = TLS; way < WAYS; way++)
        listeners[way] = listen_local(&addresses[way]);
    for (enum way way = 0; way < WAYS; way++)
        pairs[way] = fork_producer(way, &addresses[way]);
    for (enum way way = TLS; way < WAYS; way++) {
        pairs[way].fd = accept4(listeners[way], NULL, NULL, SOCK_CLOEXEC);
        require(pairs[way].fd >= 0, "accept");
        close(listeners[way]);
    }
    pairs[TLS].ssl = shake_hands(pairs[TLS].fd, true);
    node_start(&node);
    // One round of each to warm up.
    for (int i = -1; i < ROUNDS; i++)
        for (enum way way = 0; way < WAYS; way++) {
            double rate = time_round(&node, way, &pairs[way]);
            if (i >= 0)
                rates[way][i] = rate;
        }
    for (enum way way = 0; way < WAYS; way++)
        is_good = has_succeeded(&pairs[way]) && is_good;
    node_close(&node);
    const struct figure tcp = {"remote_feed", BATCH_CASE, "GB/s", "tcp", GOAL};
    const struct figure tls = {"remote_feed", BATCH_CASE, "GB/s", "bare_tls", TLS_GOAL};
    double remote = median(rates[REMOTE], ROUNDS);
    print_line(&tcp, remote, median(rates[TCP], ROUNDS));
    print_line(&tls, remote, median(rates[TLS], ROUNDS));
    return is_good ? 0 : 1;
}
