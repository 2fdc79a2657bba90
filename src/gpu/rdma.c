// SPDX-License-Identifier: Apache-2.0
// Adapters for RDMA, from sysfs: class/infiniband/<device>/ports/<n>/{state,link_layer,rate}.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/gpu.h"

#define DEFAULT_SYSFS "/sys"
#define PATH_SIZE 512

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/// The first line of a file of the port; "" when there is none.
static void read_line(const char *folder, const char *name, char *text, size_t size)
{
    char path[PATH_SIZE + 32];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    text[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (!fgets(text, (int)size, file))
        text[0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    fclose(file);
}

static void read_port(const char *device, const char *folder, const char *number,
                      struct tfos_rdma_port *port)
{
    char state[48], layer[48], path[PATH_SIZE];
    snprintf(path, sizeof(path), "%.480s/%.16s", folder, number);
    *port = (struct tfos_rdma_port){.port = (int)strtol(number, NULL, 10)};
    snprintf(port->device, sizeof(port->device), "%.63s", device);
    read_line(path, "state", state, sizeof(state)); // "4: ACTIVE"
    read_line(path, "link_layer", layer, sizeof(layer));
    read_line(path, "rate", port->rate, sizeof(port->rate));
    port->is_active = strstr(state, "ACTIVE") != NULL;
    port->is_ethernet = strcmp(layer, "Ethernet") == 0;
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        tfos__free(names[i]);
    tfos__free(names);
}

enum tfos_status tfos_rdma_list(const char *sysfs, struct tfos_rdma_port *ports, size_t capacity,
                                size_t *count, struct tfos_error *err)
{
    char root[PATH_SIZE / 2], folder[PATH_SIZE];
    struct dirent **devices;
    size_t found = 0;
    if (snprintf(root, sizeof(root), "%s/class/infiniband", sysfs ? sysfs : DEFAULT_SYSFS) >=
        (int)sizeof(root))
        return tfos__fail(err, TFOS_INVALID, "rdma: the name of sysfs is too long: %s", sysfs);
    int device_count = scandir(root, &devices, is_visible, alphasort);
    if (device_count < 0 && errno != ENOENT)
        return tfos__fail_errno(err, TFOS_IO, "rdma: cannot read %s", root);
    for (int i = 0; i < device_count; i++) {
        struct dirent **numbers;
        snprintf(folder, sizeof(folder), "%s/%.128s/ports", root, devices[i]->d_name);
        int port_count = scandir(folder, &numbers, is_visible, alphasort);
        for (int j = 0; j < port_count; j++, found++)
            if (found < capacity)
                read_port(devices[i]->d_name, folder, numbers[j]->d_name, &ports[found]);
        if (port_count >= 0)
            free_names(numbers, port_count);
    }
    if (device_count >= 0)
        free_names(devices, device_count);
    *count = found;
    return TFOS_OK;
}
