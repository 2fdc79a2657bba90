// SPDX-License-Identifier: Apache-2.0
/// How a symbol becomes part of the library's interface, and how a result is made impossible to
/// ignore.
#ifndef TFOS_EXPORT_H
#define TFOS_EXPORT_H

#define TFOS_API __attribute__((visibility("default")))
#define TFOS_MUST_CHECK __attribute__((warn_unused_result))

#endif
