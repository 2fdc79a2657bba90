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
        this(forSpark(new String(message, StandardCharsets.UTF_8)));
    }

    /** What to do, in the words of Spark's options and settings. */
    private static String forSpark(String message) {
        String caseSensitive = RecordColumns.CASE_SENSITIVE;
        String advice = message.endsWith("differ in letter case only") ? ": set " + caseSensitive + "=true, and give both in the schema"
                : message.endsWith("put both into the schema") ? ", or set " + caseSensitive + "=false"
                : "";
        return message.replaceAll("the record type (\\w+)", "recordType=$1")
                .replace("the metadata tfos.encoding=exact", "the option schemaMode=sidecar") + advice;
    }
}
