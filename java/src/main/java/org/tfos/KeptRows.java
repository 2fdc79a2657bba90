// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.util.ArrayDeque;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/** Copies of rows that wait for their results, first in, first out. They are in Java's memory, and can be read after the task has ended. */
final class KeptRows {
    private static final int BLOCK_SIZE = 1 << 16;
    private static final int HEADER = 8; // the size of a row; rows begin at multiples of 8

    private static final class Block {
        final byte[] bytes;
        int end;

        Block(int size) {
            bytes = new byte[size];
        }
    }

    private final ArrayDeque<Block> blocks = new ArrayDeque<>();
    private final UnsafeRow row;
    private int position; // of the next row in the first block

    KeptRows(int fieldCount) {
        row = new UnsafeRow(fieldCount);
    }

    void add(UnsafeRow added) {
        int size = added.getSizeInBytes();
        Block block = blocks.peekLast();
        if (block == null || block.bytes.length - block.end < HEADER + size) {
            block = new Block(Math.max(BLOCK_SIZE, HEADER + size));
            blocks.addLast(block);
        }
        long at = Platform.BYTE_ARRAY_OFFSET + block.end;
        Platform.putInt(block.bytes, at, size);
        Platform.copyMemory(added.getBaseObject(), added.getBaseOffset(), block.bytes, at + HEADER, size);
        block.end += HEADER + size;
    }

    int fieldCount() {
        return row.numFields();
    }

    /** The oldest row; it is this until the next call. */
    UnsafeRow next() {
        Block block = blocks.element();
        if (position == block.end) {
            blocks.removeFirst();
            block = blocks.element();
            position = 0;
        }
        long at = Platform.BYTE_ARRAY_OFFSET + position;
        int size = Platform.getInt(block.bytes, at);
        row.pointTo(block.bytes, at + HEADER, size);
        position += HEADER + size;
        return row;
    }
}
