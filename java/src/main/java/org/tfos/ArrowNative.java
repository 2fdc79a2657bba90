// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** The natives for Arrow's structs, to be called after {@link NativeLibrary#load}. */
final class ArrowNative {
    private ArrowNative() {}

    /** Calls the release function of the struct ArrowArray at {@code array}, unless that has been done. The struct's own memory stays. */
    static native void releaseArray(long array);

    /** The same for a struct ArrowSchema. */
    static native void releaseSchema(long schema);

    /** Puts the Arrow schema of what StructType.json() gives into the empty struct ArrowSchema at {@code schema}. */
    static native void parseSchema(byte[] json, long schema);

    /** The name of the type of the struct ArrowSchema at {@code schema}. */
    static native byte[] typeText(long schema);
}
