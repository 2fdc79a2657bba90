// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** Schema inference in C; call {@link NativeLibrary#load} first. An inference is JSON: what is known of the features of some records. */
final class SchemaInferenceNative {
    private SchemaInferenceNative() {}

    /**
     * @param name the file, for messages
     * @param limit how many of the first records to read; 0: all
     */
    static native byte[] read(ByteSource source, byte[] name, int type, int mode, long limit);

    /** What is known from both. */
    static native byte[] merge(byte[] inference, byte[] other);

    /** Puts the schema that all records seen can be read with into the empty struct ArrowSchema at {@code schema}. */
    static native void schema(byte[] inference, long schema);
}
