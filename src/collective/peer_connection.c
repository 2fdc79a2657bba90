// SPDX-License-Identifier: Apache-2.0
// Client: hello with a nonce. Server: challenge with its nonce and its proof. Client: its proof. A
// proof is bound to the side, the session, the ranks, the purpose and both nonces, so that none can
// be used again.
#include "collective/peer_connection.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <tfos/collective.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"

static const char *const purposes[] = {
    [TFOS__COLLECTIVE_CONTROL] = "control",
    [TFOS__COLLECTIVE_RING] = "ring",
    [TFOS__COLLECTIVE_PARAMETERS] = "parameters",
};

static enum tfos_status make_nonce(char nonce[TFOS__KEY_PROOF_SIZE], struct tfos_error *err)
{
    unsigned char bytes[TFOS__KEY_SIZE];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return tfos__fail_errno(err, TFOS_IO, "collective: cannot get random bytes");
    tfos__cluster_key_print(bytes, nonce);
    return TFOS_OK;
}

static enum tfos_status make_proof(const struct tfos__collective_peer *peer,
                                   const struct tfos__collective_credentials *credentials,
                                   const char *side, char proof[TFOS__KEY_PROOF_SIZE],
                                   struct tfos_error *err)
{
    char label[512];
    int client = peer->is_server ? peer->rank : credentials->rank;
    int server = peer->is_server ? credentials->rank : peer->rank;
    snprintf(label, sizeof(label), "collective %s %s %s %d %d %s %s", side, credentials->session,
             purposes[peer->purpose], client, server, peer->client_nonce, peer->server_nonce);
    return tfos__cluster_key_prove(credentials->identity.key, label, "collective", proof, err);
}

enum tfos_status tfos__collective_peer_open(struct tfos__collective_peer *peer, int fd,
                                            bool is_server, enum tfos__collective_purpose purpose,
                                            int rank,
                                            const struct tfos__collective_credentials *credentials,
                                            struct tfos_error *err)
{
    char name[32];
    enum tfos__channel_kind kind = credentials->is_trusted_network ? TFOS__CHANNEL_UNIX
                                   : is_server                     ? TFOS__CHANNEL_TLS_SERVER
                                                                   : TFOS__CHANNEL_TLS_CLIENT;
    *peer = (struct tfos__collective_peer){
        .purpose = purpose, .rank = is_server ? -1 : rank, .is_server = is_server};
    snprintf(name, sizeof(name), is_server ? "a rank" : "rank %d", rank);
    TFOS__TRY(tfos__channel_open(fd, kind, &credentials->identity, name, &peer->channel, err));
    enum tfos_status status = TFOS_OK;
    if (purpose != TFOS__COLLECTIVE_CONTROL || is_server)
        status = tfos__channel_expect_bulk(peer->channel, err);
    if (status == TFOS_OK)
        status = make_nonce(is_server ? peer->server_nonce : peer->client_nonce, err);
    if (status == TFOS_OK && !is_server)
        status = tfos__channel_queue(peer->channel,
                                     json_pack("{s:s, s:s, s:i, s:s}", "type", "hello", "purpose",
                                               purposes[purpose], "rank", credentials->rank,
                                               "nonce", peer->client_nonce),
                                     NULL, 0, err);
    if (status != TFOS_OK)
        tfos__collective_peer_close(peer);
    return status;
}

static enum tfos_status take_nonce(const json_t *message, char nonce[TFOS__KEY_PROOF_SIZE],
                                   struct tfos_error *err)
{
    const char *text;
    TFOS__TRY(tfos__json_get_string(message, "nonce", &text, err));
    if (strlen(text) != TFOS__KEY_PROOF_SIZE - 1)
        return tfos__fail(err, TFOS_CORRUPT, "a nonce has %zu characters", strlen(text));
    memcpy(nonce, text, TFOS__KEY_PROOF_SIZE);
    return TFOS_OK;
}

static enum tfos_status check_proof(const struct tfos__collective_peer *peer,
                                    const struct tfos__collective_credentials *credentials,
                                    const json_t *message, struct tfos_error *err)
{
    char expected[TFOS__KEY_PROOF_SIZE];
    TFOS__TRY(make_proof(peer, credentials, peer->is_server ? "client" : "server", expected, err));
    if (!tfos__cluster_key_is_proven(tfos__json_string_or(message, "proof", ""), expected))
        return tfos__fail(err, TFOS_DENIED, "the other side does not hold this group's key");
    return TFOS_OK;
}

static enum tfos_status send_proof(struct tfos__collective_peer *peer,
                                   const struct tfos__collective_credentials *credentials,
                                   struct tfos_error *err)
{
    char proof[TFOS__KEY_PROOF_SIZE];
    const char *side = peer->is_server ? "server" : "client";
    TFOS__TRY(make_proof(peer, credentials, side, proof, err));
    return tfos__channel_queue(peer->channel,
                               peer->is_server
                                   ? json_pack("{s:s, s:s, s:s}", "type", "challenge", "nonce",
                                               peer->server_nonce, "proof", proof)
                                   : json_pack("{s:s, s:s}", "type", "proof", "proof", proof),
                               NULL, 0, err);
}

static enum tfos_status take_hello(struct tfos__collective_peer *peer,
                                   const struct tfos__collective_credentials *credentials,
                                   const json_t *message, struct tfos_error *err)
{
    const char *purpose;
    int64_t rank;
    TFOS__TRY(tfos__json_get_int(message, "rank", 0, credentials->size - 1, &rank, err));
    TFOS__TRY(tfos__json_get_string(message, "purpose", &purpose, err));
    TFOS__TRY(take_nonce(message, peer->client_nonce, err));
    peer->rank = (int)rank;
    peer->purpose = TFOS__COLLECTIVE_PARAMETERS;
    while (peer->purpose > TFOS__COLLECTIVE_CONTROL &&
           strcmp(purpose, purposes[peer->purpose]) != 0)
        peer->purpose--;
    return send_proof(peer, credentials, err);
}

static enum tfos_status follow(struct tfos__collective_peer *peer,
                               const struct tfos__collective_credentials *credentials,
                               const json_t *message, struct tfos_error *err)
{
    const char *type = tfos__json_string_or(message, "type", "");
    if (peer->is_server && peer->rank < 0 && strcmp(type, "hello") == 0)
        return take_hello(peer, credentials, message, err);
    if (strcmp(type, peer->is_server ? "proof" : "challenge") != 0 || peer->rank < 0)
        return tfos__fail(err, TFOS_CORRUPT, "an unexpected message \"%.32s\"", type);
    if (!peer->is_server)
        TFOS__TRY(take_nonce(message, peer->server_nonce, err));
    TFOS__TRY(check_proof(peer, credentials, message, err));
    if (!peer->is_server)
        TFOS__TRY(send_proof(peer, credentials, err));
    peer->is_proven = true;
    return TFOS_OK;
}

enum tfos_status tfos__collective_peer_pump(struct tfos__collective_peer *peer,
                                            const struct tfos__collective_credentials *credentials,
                                            struct tfos_error *err)
{
    struct tfos_error cause;
    enum tfos_status pumped = tfos__channel_pump(peer->channel, &cause), status;
    json_t *message;
    while (!peer->is_proven &&
           (status = tfos__channel_next(peer->channel, &message, NULL, NULL, err)) != TFOS_AGAIN) {
        TFOS__TRY(status);
        status = follow(peer, credentials, message, err);
        json_decref(message);
        TFOS__TRY(status);
    }
    if (pumped < 0 && !peer->is_proven)
        return tfos__fail(err, pumped, "%s", cause.message);
    TFOS__TRY(tfos__channel_flush(peer->channel, err));
    return peer->is_proven && tfos__channel_pending_size(peer->channel) == 0 ? TFOS_OK : TFOS_AGAIN;
}

void tfos__collective_peer_close(struct tfos__collective_peer *peer)
{
    tfos__channel_close(peer->channel);
    *peer = (struct tfos__collective_peer){0};
}
