// SPDX-License-Identifier: Apache-2.0
package org.tfos;

/** Exceptions whose class Spark looks at, thrown where Java's signatures do not allow them. */
final class Raised {
    private Raised() {}

    /** Throws it as it is: {@code throw Raised.as(error)}. */
    static RuntimeException as(Throwable error) {
        throw Raised.<RuntimeException>unchecked(error);
    }

    @SuppressWarnings("unchecked") // the cast is none when the program runs
    private static <E extends Throwable> E unchecked(Throwable error) throws E {
        throw (E) error;
    }
}
