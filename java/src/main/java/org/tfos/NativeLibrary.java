// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** The shared library inside the jar. */
final class NativeLibrary {
    private static boolean isLoaded; // guarded by the class

    private NativeLibrary() {}

    /**
     * Loads it, once, by way of a temporary file, which is gone when this returns. Not in a static initializer: what fails there is an Error,
     * and Spark ends an executor whose task throws one.
     *
     * @throws TfosException each time that it cannot be loaded
     */
    static synchronized void load() {
        if (isLoaded) {
            return;
        }
        String name = resourceName();
        try (InputStream content = NativeLibrary.class.getResourceAsStream(name)) {
            if (content == null) {
                throw failure("it has no " + name);
            }
            Path file = Files.createTempFile("libtfos_jni", ".so");
            try {
                Files.copy(content, file, StandardCopyOption.REPLACE_EXISTING);
                System.load(file.toString());
            } finally {
                Files.delete(file);
            }
        } catch (IOException | UnsatisfiedLinkError error) {
            throw failure(error.toString());
        }
        isLoaded = true;
    }

    private static TfosException failure(String cause) {
        return new TfosException("UnsupportedError: java: the library in tfos.jar cannot be loaded on this machine: " + cause
                + " (via=\"arrow\" goes without it)");
    }

    private static String resourceName() {
        String machine = System.getProperty("os.arch");
        String architecture = machine.equals("amd64") ? "x86_64" : machine;
        return "/native/linux-" + architecture + "/libtfos_jni.so";
    }
}
