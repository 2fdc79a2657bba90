// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.spark.TaskKilledException;

/** Where this executor's Python has TensorFlow. */
final class TensorFlowFolder {
    private static final long MOST_SECONDS = 60;
    private static final String MARK = "tfos:"; // before the answer: what starts Python may print, too
    private static final String PROGRAM = "import importlib.util\n"
            + "spec = importlib.util.find_spec('tensorflow')\n"
            + "print('\\n" + MARK + "' + (list(spec.submodule_search_locations or ()) + [''] if spec else [''])[0])";

    private static final Map<String, String> found = new HashMap<>(); // by the Python; guarded by the class

    private TensorFlowFolder() {}

    /** Asks Python once, which does not import TensorFlow for it. A relative path is one in the executor's folder, as for Spark's workers. */
    static synchronized String of(String python) {
        return found.computeIfAbsent(python, TensorFlowFolder::ask);
    }

    private static String ask(String python) {
        String output;
        try {
            output = output(new ProcessBuilder(python, "-c", PROGRAM).redirectErrorStream(true).start());
        } catch (IOException error) {
            throw failure(python, error.toString());
        }
        for (String line : output.split("\n")) {
            if (line.startsWith(MARK) && line.length() > MARK.length()) {
                return line.substring(MARK.length());
            }
        }
        throw failure(python, output.contains(MARK) ? "it has no tensorflow" : output.trim());
    }

    private static String output(Process process) throws IOException {
        try {
            if (!process.waitFor(MOST_SECONDS, TimeUnit.SECONDS)) {
                throw new IOException("it did not answer within " + MOST_SECONDS + " s");
            }
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        } catch (InterruptedException interrupted) {
            throw new TaskKilledException("transform was interrupted");
        } finally {
            process.destroyForcibly();
        }
    }

    private static TfosException failure(String python, String cause) {
        return new TfosException("UnsupportedError: transform: the executor's Python, " + python + ", does not say where TensorFlow is: " + cause
                + ": install tensorflow there, or choose another Python by PYSPARK_PYTHON or spark.pyspark.python");
    }
}
