// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The natives of surveys, to be called after {@link NativeLibrary#load}. A survey is JSON: what is known of the features of some records. */
final class SurveyNative {
    private SurveyNative() {}

    /**
     * @param name the file, for messages
     * @param limit looks at so many of the first records; 0: at all
     */
    static native byte[] read(ByteSource source, byte[] name, int type, int mode, long limit);

    /** What is known from both. */
    static native byte[] merge(byte[] survey, byte[] other);

    /** Puts the schema that all records seen can be read with into the empty struct ArrowSchema at {@code schema}. */
    static native void schema(byte[] survey, long schema);
}
