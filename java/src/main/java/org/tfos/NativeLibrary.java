// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** The shared library inside the jar. */
final class NativeLibrary {
    private NativeLibrary() {}

    /** Loads it by way of a temporary file, which is gone when this returns. */
    static void load() {
        String name = resourceName();
        try (InputStream content = NativeLibrary.class.getResourceAsStream(name)) {
            if (content == null) {
                throw new TfosException("UnsupportedError: java: tfos.jar was not built for this machine: it has no " + name);
            }
            Path file = Files.createTempFile("libtfos_jni", ".so");
            try {
                Files.copy(content, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally {
                Files.delete(file);
            }
        } catch (IOException | UnsatisfiedLinkError error) {
            throw new TfosException("UnsupportedError: java: cannot load " + name + " from tfos.jar: " + error.getMessage());
        }
    }

    private static String resourceName() {
        String machine = System.getProperty("os.arch");
        String architecture = machine.equals("amd64") ? "x86_64" : machine;
        return "/native/linux-" + architecture + "/libtfos_jni.so";
    }
}
