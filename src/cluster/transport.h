// SPDX-License-Identifier: Apache-2.0
/// How the TCP connections of a rendezvous are set up, at both ends.
#ifndef TFOS_CLUSTER_TRANSPORT_H
#define TFOS_CLUSTER_TRANSPORT_H

/// Sends small messages at once, and notices within about a minute that the machine at the other
/// end is gone. Best effort: where an option does not exist, messages only take longer, or the
/// kernel's own times hold.
void tfos__transport_tune(int fd);

#endif
