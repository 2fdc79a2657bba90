// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;

/** A failed call of the library. The text begins with the name of the Python exception that it becomes in the driver. */
public final class TfosException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    TfosException(String message) {
        super(message);
    }

    /** Called by the native library. */
    TfosException(byte[] message) {
        this(new String(message, StandardCharsets.UTF_8));
    }
}
