// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Paths that Hadoop takes for patterns though something is there under exactly their name: they must not match others. */
public final class PathPatterns {
    private static final String CHARACTERS = "[\\\\{}\\[\\]*?]";

    private PathPatterns() {}

    /**
     * Makes sure that a path matches nothing but the file of exactly this name, if there is one.
     *
     * @throws IllegalArgumentException it does; says how to write it
     */
    public static void check(Path path, Configuration configuration) throws IOException {
        String escaped = path.toString().replaceAll(CHARACTERS, "\\\\$0");
        if (escaped.equals(path.toString())) {
            return;
        }
        FileSystem system = path.getFileSystem(configuration);
        FileStatus[] matches = system.exists(path) ? system.globStatus(path) : null;
        for (int i = 0; matches != null && i < matches.length; i++) {
            if (!matches[i].getPath().equals(system.makeQualified(path))) {
                throw new IllegalArgumentException("tfrecord: " + path + " is there, but Hadoop takes its name for a pattern, and would read "
                        + matches[i].getPath() + ": put a backslash before such characters, as in " + escaped);
            }
        }
    }
}
