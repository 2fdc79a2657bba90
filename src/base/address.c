// SPDX-License-Identifier: Apache-2.0
// Hosts, ports and interfaces in words. The holder of a port is found as ss(8) without netlink
// does: the socket's inode from /proc/net/tcp, then the process that has it open; another user's
// processes do not show theirs.
#include "base/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

int tfos__address_host(const struct sockaddr *address, char host[TFOS__ADDRESS_SIZE])
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, TFOS__ADDRESS_SIZE);
        return ntohs(v4->sin_port);
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], host, TFOS__ADDRESS_SIZE);
    else if (getnameinfo(address, sizeof *v6, host, TFOS__ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST))
        inet_ntop(AF_INET6, &v6->sin6_addr, host, TFOS__ADDRESS_SIZE);
    return ntohs(v6->sin6_port);
}

enum tfos_status tfos__address_split(const char *address, char host[TFOS__ADDRESS_SIZE],
                                     char service[8], struct tfos_error *err)
{
    const char *begin = address;
    const char *end = strrchr(address, ':');
    const char *port = end ? end + 1 : "";
    if (*begin == '[' && end && end > begin + 1 && end[-1] == ']') {
        begin++;
        end--;
    } else if (end && memchr(begin, ':', (size_t)(end - begin))) {
        end = NULL; // an IPv6 host without brackets
    }
    size_t digits = strspn(port, "0123456789");
    if (!end || end == begin || (size_t)(end - begin) >= TFOS__ADDRESS_SIZE - 8 || digits == 0 ||
        digits > 5 || port[digits] != '\0')
        return tfos__fail(err, TFOS_INVALID,
                          "socket: cannot read the address \"%s\": expected host:port or "
                          "[IPv6 host]:port",
                          address);
    memcpy(host, begin, (size_t)(end - begin));
    host[end - begin] = '\0';
    memcpy(service, port, digits + 1);
    return TFOS_OK;
}

enum tfos_status tfos__address_unix(const char *name, struct sockaddr_un *address, socklen_t *size,
                                    struct tfos_error *err)
{
    size_t length = strlen(name);
    if (length == 0 || length >= sizeof address->sun_path)
        return tfos__fail(err, TFOS_INVALID,
                          "socket: a unix socket's name must have 1 to %zu bytes, \"%s\" has %zu",
                          sizeof address->sun_path - 1, name, length);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path + 1, name, length);
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
    return TFOS_OK;
}

void tfos__socket_join(const char *host, int port, char address[TFOS__ADDRESS_SIZE])
{
    const char *format = strchr(host, ':') ? "[%.*s]:%d" : "%.*s:%d";
    snprintf(address, TFOS__ADDRESS_SIZE, format, TFOS__ADDRESS_SIZE - 9, host, port);
}

enum tfos_status tfos__socket_local_host(int fd, char host[TFOS__ADDRESS_SIZE],
                                         struct tfos_error *err)
{
    struct sockaddr_storage address = {0};
    socklen_t size = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot tell the local address");
    if (address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return tfos__fail(err, TFOS_INVALID, "socket: not a TCP socket");
    tfos__address_host((const struct sockaddr *)&address, host);
    return TFOS_OK;
}

// How good an interface's address is to advertise: 0 is useless, and the first of the best is
// taken.
static int rank_interface(const struct ifaddrs *item)
{
    if (!item->ifa_addr || !(item->ifa_flags & IFF_UP))
        return 0;
    bool is_loopback = item->ifa_flags & IFF_LOOPBACK;
    if (item->ifa_addr->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)item->ifa_addr;
        bool is_link_local = (ntohl(v4->sin_addr.s_addr) >> 16) == 0xA9FE; // 169.254.0.0/16
        if (is_loopback)
            return 2;
        // A bridge to which nothing is attached (docker0) is up, but does not run.
        return (item->ifa_flags & IFF_RUNNING) && !is_link_local ? 4 : 0;
    }
    if (item->ifa_addr->sa_family != AF_INET6)
        return 0;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)item->ifa_addr;
    if (is_loopback)
        return 1;
    return (item->ifa_flags & IFF_RUNNING) && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) ? 3 : 0;
}

enum tfos_status tfos__socket_any_host(char host[TFOS__ADDRESS_SIZE], struct tfos_error *err)
{
    struct ifaddrs *items;
    if (getifaddrs(&items) != 0)
        return tfos__fail_errno(err, TFOS_IO, "socket: cannot list the network interfaces");
    const struct ifaddrs *best = NULL;
    for (const struct ifaddrs *item = items; item; item = item->ifa_next) {
        if (rank_interface(item) > (best ? rank_interface(best) : 0))
            best = item;
    }
    if (best)
        tfos__address_host(best->ifa_addr, host);
    freeifaddrs(items);
    if (!best)
        return tfos__fail(err, TFOS_NOT_FOUND,
                          "socket: no network interface is up, not even loopback; set "
                          "TFOS_SERVER_HOST");
    return TFOS_OK;
}

#define LISTENING 0x0A // TCP_LISTEN in the kernel's tables

struct table_socket {
    unsigned state;
    unsigned long inode; // 0: no process has it open any more
};

// The next socket in one of the kernel's tables that is bound to `port`.
static bool read_socket(FILE *table, int port, struct table_socket *out)
{
    char line[512];
    while (fgets(line, sizeof line, table)) {
        unsigned local_port;
        if (sscanf(line,
                   "%*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*d %lu",
                   &local_port, &out->state, &out->inode) == 3 &&
            (int)local_port == port)
            return true;
    }
    return false;
}

bool tfos__address_find_listener(int port, bool *is_found)
{
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    bool is_known = false;
    *is_found = false;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !*is_found; i++) {
        FILE *table = fopen(tables[i], "re"); // there is none of a family that the kernel lacks
        if (!table)
            continue;
        is_known = true;
        struct table_socket found;
        while (!*is_found && read_socket(table, port, &found))
            *is_found = found.state == LISTENING;
        fclose(table);
    }
    return is_known;
}

// The inode of a socket that is bound to `port`, a listening one if there is one; 0: none.
static unsigned long find_inode(const char *path, int port)
{
    FILE *table = fopen(path, "re");
    if (!table)
        return 0;
    unsigned long inode = 0;
    struct table_socket found = {0};
    while (found.state != LISTENING && read_socket(table, port, &found)) {
        if (found.inode != 0)
            inode = found.inode;
    }
    fclose(table);
    return inode;
}

static bool has_socket_open(const char *pid, const char *link)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/fd", pid);
    DIR *folder = opendir(path);
    if (!folder)
        return false;
    bool found = false;
    const struct dirent *entry;
    while (!found && (entry = readdir(folder)) != NULL) {
        char target[64];
        ssize_t size = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (size <= 0)
            continue;
        target[size] = '\0';
        found = strcmp(target, link) == 0;
    }
    closedir(folder);
    return found;
}

static void describe_process(const char *pid, char *text, size_t size)
{
    char path[300];
    char command[64] = "";
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fgets(command, sizeof command, file))
            command[strcspn(command, "\n")] = '\0';
        fclose(file);
    }
    snprintf(text, size, "pid %s (%s)", pid, command[0] != '\0' ? command : "ended since");
}

void tfos__address_port_holder(int port, char *text, size_t size)
{
    snprintf(text, size, "another process");
    unsigned long inode = find_inode("/proc/net/tcp", port);
    if (inode == 0)
        inode = find_inode("/proc/net/tcp6", port);
    DIR *folder = inode != 0 ? opendir("/proc") : NULL;
    if (!folder)
        return;
    char link[64];
    snprintf(link, sizeof link, "socket:[%lu]", inode);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]) || !has_socket_open(entry->d_name, link))
            continue;
        describe_process(entry->d_name, text, size);
        break;
    }
    closedir(folder);
}
