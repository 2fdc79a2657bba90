// SPDX-License-Identifier: Apache-2.0
package org.tfos;

import java.io.IOException;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.TimeUnit;

/** The model that this JVM has loaded last, which the executor's tasks share. It is freed a minute after the last of them. */
final class LoadedModel {
    private static final long MOST_IDLE_MS = 60_000; // as long as Spark keeps idle Python workers

    private static LoadedModel current; // guarded by the class, as are all models; null: none
    private static Timer timer; // null: no model has been idle yet

    private final String state;
    private final long handle;
    private int holdCount;
    private boolean isWatched; // a timer will look whether it is idle
    private long idleSince;

    private LoadedModel(String state, long handle) {
        this.state = state;
        this.handle = handle;
    }

    /** The model as its files are now, held until {@link #release}. Tasks wait for one that loads it. */
    static LoadedModel acquire(ModelSource source) throws IOException {
        String state = source.state();
        synchronized (LoadedModel.class) {
            if (current == null || !current.state.equals(state)) {
                drop(); // before the next is loaded: both may not fit into memory
                current = new LoadedModel(state, source.load());
            }
            current.holdCount++;
            return current;
        }
    }

    long handle() {
        return handle;
    }

    void release() {
        synchronized (LoadedModel.class) {
            holdCount--;
            if (holdCount > 0) {
                return;
            }
            if (current == this) {
                idleSince = System.nanoTime();
                watch(MOST_IDLE_MS);
            } else {
                TransformNative.unload(handle);
            }
        }
    }

    /** Tasks that still use the model free it. */
    private static void drop() {
        LoadedModel last = current;
        current = null;
        if (last != null && last.holdCount == 0) {
            TransformNative.unload(last.handle);
        }
    }

    private void watch(long delayMs) {
        if (isWatched) {
            return;
        }
        isWatched = true;
        timer = timer == null ? new Timer("tfos-models", true) : timer;
        timer.schedule(
                new TimerTask() {
                    @Override
                    public void run() {
                        endIfIdle();
                    }
                },
                delayMs);
    }

    private void endIfIdle() {
        synchronized (LoadedModel.class) {
            isWatched = false;
            if (current != this || holdCount > 0) {
                return;
            }
            long leftMs = MOST_IDLE_MS - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - idleSince);
            if (leftMs > 0) {
                watch(leftMs);
            } else {
                drop();
            }
        }
    }
}
