// SPDX-License-Identifier: Apache-2.0
/// Options of TCP connections. All are best effort: where one does not exist, messages take longer,
/// or the kernel's own times hold.
#ifndef TFOS_BASE_TCP_OPTIONS_H
#define TFOS_BASE_TCP_OPTIONS_H

enum tfos__tcp_use {
    TFOS__TCP_MESSAGES, ///< small messages, each acknowledged soon
    TFOS__TCP_BULK      ///< megabytes to a reader that may let them wait for hours
};

/// Sends small messages at once. Of every connection.
void tfos__tcp_options_set_no_delay(int fd);

/// Notices within about a minute (bulk: half a minute) that the machine at the other end is gone.
void tfos__tcp_options_watch_peer(int fd, enum tfos__tcp_use use);

#endif
