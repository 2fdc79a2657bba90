// SPDX-License-Identifier: Apache-2.0
/// The cluster's pre-shared key: its text form, 64 hexadecimal digits; what two sides of a TLS
/// connection must have in common; keys derived from it; and proofs of it, which travel in the
/// clear. Whoever keeps a key or a proof clears it with explicit_bzero() afterwards.
#ifndef TFOS_BASE_CLUSTER_KEY_H
#define TFOS_BASE_CLUSTER_KEY_H

#include <stdbool.h>
#include <tfos/status.h>

#define TFOS__KEY_SIZE 32                             ///< bytes of a cluster's key
#define TFOS__KEY_PROOF_SIZE (2 * TFOS__KEY_SIZE + 1) ///< hexadecimal digits and NUL

/// Who we are to the peer: both ends must hold the same id and key.
struct tfos__identity {
    const char *cluster_id;
    unsigned char key[TFOS__KEY_SIZE];
};

/// Reads the digits of `text`. INVALID says what was expected, never what the key was; `module`
/// begins the message.
enum tfos_status tfos__cluster_key_read(const char *text, const char *module,
                                        unsigned char key[TFOS__KEY_SIZE], struct tfos_error *err);

/// Another key for the purpose `label`, from which `key` cannot be computed; `module` begins a
/// message.
enum tfos_status tfos__cluster_key_derive(const unsigned char key[TFOS__KEY_SIZE],
                                          const char *label, const char *module,
                                          unsigned char derived[TFOS__KEY_SIZE],
                                          struct tfos_error *err);

/// The text form of a key, which cluster_key_read() reads.
void tfos__cluster_key_print(const unsigned char key[TFOS__KEY_SIZE],
                             char text[TFOS__KEY_PROOF_SIZE]);

/// Writes the proof, for the purpose `label`, that `key` is held; `module` begins a message.
enum tfos_status tfos__cluster_key_prove(const unsigned char key[TFOS__KEY_SIZE], const char *label,
                                         const char *module, char proof[TFOS__KEY_PROOF_SIZE],
                                         struct tfos_error *err);

/// Compares a peer's proof with ours, in a time that does not depend on where they differ.
bool tfos__cluster_key_is_proven(const char *proof, const char expected[TFOS__KEY_PROOF_SIZE]);

#endif
