// SPDX-License-Identifier: Apache-2.0
/// What the library asks of collectives beyond <tfos/collective.h>.
#ifndef TFOS_COLLECTIVE_COLLECTIVE_H
#define TFOS_COLLECTIVE_COLLECTIVE_H

#include <tfos/collective.h>

/// tfos_collective_open() on a host that is another one's for ranks with another `host_label`:
/// tests have several hosts on one machine. NULL: no label.
enum tfos_status tfos__collective_open(const struct tfos_collective_options *options,
                                       const char *host_label, struct tfos_collective **out,
                                       struct tfos_error *err);

/// tfos_collective_get_figures() without who came last, which others may ask for.
void tfos__collective_peek_figures(struct tfos_collective *group,
                                   struct tfos_collective_figures *figures);

#endif
