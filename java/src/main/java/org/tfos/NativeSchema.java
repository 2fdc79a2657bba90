// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.Platform;

/**
 * A struct ArrowSchema (the Arrow C data interface) in native memory. One that was made here owns what native code puts into it, and is to be
 * closed; {@link #child} and {@link #at} give views that live as long as their owner.
 */
public final class NativeSchema implements AutoCloseable {
    private static final long SIZE = 72;
    private static final long FORMAT = 0;
    private static final long NAME = 8;
    private static final long CHILD_COUNT = 32;
    private static final long CHILDREN = 40;
    private static final long RELEASE = 56;

    private final boolean isOwner;
    private long address;

    /** An empty struct for native code to fill. */
    public NativeSchema() {
        NativeLibrary.load();
        address = Platform.allocateMemory(SIZE);
        Platform.setMemory(address, (byte) 0, SIZE);
        isOwner = true;
    }

    private NativeSchema(long address) {
        this.address = address;
        isOwner = false;
    }

    /** A view of the struct at an address. */
    public static NativeSchema at(long address) {
        return new NativeSchema(address);
    }

    public long address() {
        return address;
    }

    public String format() {
        return text(Platform.getLong(null, address + FORMAT));
    }

    public String name() {
        return text(Platform.getLong(null, address + NAME));
    }

    /** The type's name, as pyarrow has it, such as {@code list<item: int32>}. */
    public String typeName() {
        return new String(ArrowNative.typeText(address), StandardCharsets.UTF_8);
    }

    public int childCount() {
        return Math.toIntExact(Platform.getLong(null, address + CHILD_COUNT));
    }

    public NativeSchema child(int index) {
        long children = Platform.getLong(null, address + CHILDREN);
        return new NativeSchema(Platform.getLong(null, children + 8L * index));
    }

    /** UTF-8 up to a NUL; nothing for a null pointer. */
    private static String text(long at) {
        if (at == 0) {
            return "";
        }
        int size = 0;
        while (Platform.getByte(null, at + size) != 0) {
            size++;
        }
        byte[] bytes = new byte[size];
        Platform.copyMemory(null, at, bytes, Platform.BYTE_ARRAY_OFFSET, size);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Releases what native code has put there, and frees the struct. Nothing for a view, or the second time. */
    @Override
    public void close() {
        if (!isOwner || address == 0) {
            return;
        }
        if (Platform.getLong(null, address + RELEASE) != 0) {
            ArrowNative.releaseSchema(address);
        }
        Platform.freeMemory(address);
        address = 0;
    }
}
