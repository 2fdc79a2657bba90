// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.Arrays;

/** What a record is. The ordinals are the numbers of enum tfos_record_type. */
enum RecordType {
    EXAMPLE("Example"),
    SEQUENCE_EXAMPLE("SequenceExample"),
    BYTES("ByteArray");

    private final String text; // the value of the option recordType

    RecordType(String text) {
        this.text = text;
    }

    static RecordType of(String text) {
        for (RecordType type : values()) {
            if (type.text.equalsIgnoreCase(text)) {
                return type;
            }
        }
        throw new IllegalArgumentException("tfrecord: recordType is \"" + text + "\", where it can be one of " + Arrays.toString(texts()));
    }

    private static Object[] texts() {
        return Arrays.stream(values()).map(type -> type.text).toArray();
    }
}
