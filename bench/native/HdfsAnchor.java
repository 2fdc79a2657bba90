// SPDX-License-Identifier: Apache-2.0

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;

/** Hadoop's own client as the bench's anchor: does what each line of its input says, and prints how many seconds that took. */
public final class HdfsAnchor {
    private static final int BLOCK = 1 << 20;
    private static final Configuration CONFIGURATION = new Configuration();

    private HdfsAnchor() {}

    public static void main(String[] args) throws IOException {
        // After each file it asks whether the data node has told of it; by default only 400 ms later.
        CONFIGURATION.set("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "1");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split("\t");
            Path path = new Path(words[1]);
            long size = Long.parseLong(words[2]);
            long start = System.nanoTime();
            if (words[0].equals("read")) {
                read(path, size, ByteBuffer.allocateDirect(BLOCK));
            } else if (words[0].equals("read_array")) {
                readArray(path, size, new byte[BLOCK]);
            } else if (words[0].equals("write")) {
                write(path, size);
            } else {
                for (int i = 0; i < Integer.parseInt(words[3]); i++) {
                    write(new Path(path, String.format("part-%05d", i)), size);
                }
            }
            System.out.println((System.nanoTime() - start) / 1e9);
        }
    }

    private static void check(long found, long size) throws IOException {
        if (found != size) {
            throw new IOException(found + " bytes were read, not " + size);
        }
    }

    private static void read(Path path, long size, ByteBuffer buffer) throws IOException {
        long sum = 0;
        try (FSDataInputStream stream = path.getFileSystem(CONFIGURATION).open(path)) {
            for (int count = 0; count >= 0; count = stream.read(buffer)) {
                sum += count;
                buffer.clear();
            }
        }
        check(sum, size);
    }

    private static void readArray(Path path, long size, byte[] buffer) throws IOException {
        long sum = 0;
        try (FSDataInputStream stream = path.getFileSystem(CONFIGURATION).open(path)) {
            for (int count = 0; count >= 0; count = stream.read(buffer)) {
                sum += count;
            }
        }
        check(sum, size);
    }

    private static void write(Path path, long size) throws IOException {
        byte[] block = new byte[(int) Math.min(size, BLOCK)];
        try (FSDataOutputStream stream = path.getFileSystem(CONFIGURATION).create(path, true)) {
            for (long left = size; left > 0; left -= block.length) {
                stream.write(block, 0, (int) Math.min(left, block.length));
            }
        }
    }
}
