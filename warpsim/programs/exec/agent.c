/* The agent of `warpsim exec` in a client process: hands calls of CUDA functions to the server, and obeys it.
 *
 * Every exported function puts its number in %r11 and jumps to warpsim_enter (names: libraries.py). The
 * registers and the first words of the stack go to the server over a Unix socket as a message; the server
 * then orders what this process is to do, until it orders the return. All of CUDA's behaviour is there.
 * A thread has a connection of its own, and so has a process after fork. messages.py has the same layouts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO 0xFFFFFFFFu
#define CALLED 0xFFFFFFFEu
#define ENDS 0xFFFFFFFCu
#define NO_DEVICE 100
#define UNKNOWN 999

enum { RETURN, PUT, GET, SYSTEM_CALL, CALL, PRINT, DESCRIPTOR };

struct message {
    uint32_t number, thread;
    uint64_t integers[6];
    double floats[4];
    uint64_t stack[12];
    uint64_t caller;
};

struct order {
    uint32_t verb, size;
    uint64_t arguments[7];
};

extern const uint32_t warpsim_texts[]; /* functions that return a text, 0 last */
extern char warpsim_first[]; /* the first exported function; the others follow, 16 bytes each */

static __thread int descriptor = -1, received = -1;
static __thread pid_t owner;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t cookie, parent; /* names of this process, and of the process that it was forked from */
static pid_t cookie_owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void leave(void *value) {
    if (owner == getpid()) close((int)(intptr_t)value - 1);
    descriptor = -1;
}

static void prepare(void) { pthread_key_create(&key, leave); }

static int send_all(const void *data, size_t size) {
    const char *place = data;
    while (size) {
        ssize_t done = send(descriptor, place, size, MSG_NOSIGNAL);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        place += done, size -= done;
    }
    return 0;
}

static int receive_all(void *data, size_t size) {
    char *place = data;
    while (size) {
        union { char bytes[CMSG_SPACE(sizeof(int))]; struct cmsghdr align; } control;
        struct iovec part = {place, size};
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                                .msg_controllen = sizeof control};
        ssize_t done = recvmsg(descriptor, &header, MSG_CMSG_CLOEXEC);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return -1;
        struct cmsghdr *extra = CMSG_FIRSTHDR(&header);
        if (extra && extra->cmsg_type == SCM_RIGHTS) memcpy(&received, CMSG_DATA(extra), sizeof(int));
        place += done, size -= done;
    }
    return 0;
}

static int print(uint32_t size) {
    char part[4096];
    while (size) {
        uint32_t now = size < sizeof part ? size : sizeof part;
        if (receive_all(part, now)) return -1;
        fwrite(part, 1, now, stdout);
        size -= now;
    }
    return 0;
}

typedef uint64_t (*function)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* Obey the server until it orders the return, and return what it says; gone where it does not. */
static uint64_t obey(int *gone) {
    *gone = 1;
    for (;;) {
        struct order order;
        if (receive_all(&order, sizeof order)) return UNKNOWN;
        uint64_t *a = order.arguments, result;
        switch (order.verb) {
        case RETURN:
            *gone = 0;
            return a[0];
        case PUT:
            if (receive_all((void *)a[0], order.size)) return UNKNOWN;
            break;
        case GET:
            if (send_all((void *)a[0], a[1])) return UNKNOWN;
            break;
        case SYSTEM_CALL:
            errno = 0;
            result = syscall(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
            if (result == (uint64_t)-1) result = -(uint64_t)errno;
            if (send_all(&result, sizeof result)) return UNKNOWN;
            break;
        case CALL: {
            struct message done = {.number = CALLED};
            done.integers[0] = ((function)a[0])(a[1], a[2], a[3], a[4], a[5], a[6]);
            if (send_all(&done, sizeof done)) return UNKNOWN;
            break;
        }
        case PRINT:
            if (print(order.size)) return UNKNOWN;
            break;
        case DESCRIPTOR:
            result = received;
            if (send_all(&result, sizeof result)) return UNKNOWN;
            break;
        }
    }
}

/* Whether a file is this user's own, of a kind, and shut to others: they lack the bits of a mode. */
static int own(const char *path, mode_t kind, mode_t others) {
    struct stat status;
    return !lstat(path, &status) && (status.st_mode & S_IFMT) == kind && status.st_uid == geteuid()
        && !(status.st_mode & others);
}

/* Whether the process that listens at a socket belongs to this user. */
static int same_user(void) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return !getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.uid == geteuid();
}

/* Whether a folder and a socket in it are this user's own; the socket may be missing. */
static int trusted(const char *path) {
    char folder[sizeof ((struct sockaddr_un *)0)->sun_path];
    char *slash = strrchr(strcpy(folder, path), '/');
    if (!slash || (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) && errno != EACCES)) return 1; /* no server */
    *slash = 0;
    return own(folder, S_IFDIR, 077) && own(path, S_IFSOCK, 022);
}

static int refused(const char *path) {
    static int said;
    if (!said++)
        fprintf(stderr, "warpsim exec: refused: %s belongs to another user, or others can write there\n", path);
    return 0;
}

static int connected(void) {
    const char *path = getenv("WARPSIM_EXEC_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof address.sun_path) return 0;
    strcpy(address.sun_path, path);
    if (!trusted(path)) return refused(path);
    pthread_once(&once, prepare);
    if (descriptor >= 0) close(descriptor); /* the parent's */
    descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || connect(descriptor, (struct sockaddr *)&address, sizeof address)) return 0;
    if (!same_user()) return refused(path);
    owner = getpid();
    pthread_mutex_lock(&lock);
    if (cookie_owner != owner) {
        parent = cookie;
        if (getrandom(&cookie, sizeof cookie, 0) == sizeof cookie) cookie_owner = owner;
    }
    pthread_mutex_unlock(&lock);
    pthread_setspecific(key, (void *)(intptr_t)(descriptor + 1));
    struct message hello = {.number = HELLO};
    hello.integers[0] = cookie, hello.integers[1] = (uint64_t)warpsim_first;
    hello.integers[2] = owner, hello.integers[3] = syscall(SYS_gettid);
    hello.integers[4] = parent;
    int gone;
    return send_all(&hello, sizeof hello) == 0 && obey(&gone) == 0;
}

/* What a function returns without a server: a code, or a text where it returns texts. */
static uint64_t without(uint32_t number, uint64_t code) {
    for (const uint32_t *text = warpsim_texts; *text; text++)
        if (*text == number) return (uint64_t)"no device: the server of warpsim exec does not answer";
    return code;
}

uint64_t warpsim_call(uint32_t number, uint64_t *integers, uint64_t *stack, uint64_t caller) {
    int kept = errno;
    struct message message = {.number = number, .caller = caller};
    if ((descriptor < 0 || owner != getpid()) && !connected()) {
        if (descriptor >= 0) close(descriptor);
        descriptor = -1;
        return without(number, NO_DEVICE);
    }
    memcpy(message.integers, integers, sizeof message.integers);
    memcpy(message.floats, integers + 6, sizeof message.floats);
    memcpy(message.stack, stack, sizeof message.stack);
    int gone = 0;
    uint64_t result = send_all(&message, sizeof message) ? (gone = 1, UNKNOWN) : obey(&gone);
    if (gone) { /* what is left of the order would be taken for another */
        close(descriptor), descriptor = -1;
        result = without(number, result);
    }
    errno = kept;
    return result;
}

/* The process ends: the server does what streams have been given. */
__attribute__((destructor)) static void end(void) {
    struct message message = {.number = ENDS};
    if (cookie_owner == getpid() && ((descriptor >= 0 && owner == getpid()) || connected()))
        if (!send_all(&message, sizeof message)) {
            int gone;
            obey(&gone);
        }
}

__asm__(".text\n"
        ".globl warpsim_enter\n"
        ".type warpsim_enter,@function\n"
        "warpsim_enter:\n"
        "  pushq %rbp\n"
        "  movq %rsp,%rbp\n"
        "  subq $80,%rsp\n"
        "  movq %rdi,(%rsp)\n"
        "  movq %rsi,8(%rsp)\n"
        "  movq %rdx,16(%rsp)\n"
        "  movq %rcx,24(%rsp)\n"
        "  movq %r8,32(%rsp)\n"
        "  movq %r9,40(%rsp)\n"
        "  movsd %xmm0,48(%rsp)\n"
        "  movsd %xmm1,56(%rsp)\n"
        "  movsd %xmm2,64(%rsp)\n"
        "  movsd %xmm3,72(%rsp)\n"
        "  movl %r11d,%edi\n"
        "  movq %rsp,%rsi\n"
        "  leaq 16(%rbp),%rdx\n"
        "  movq 8(%rbp),%rcx\n"
        "  call warpsim_call@PLT\n"
        "  leave\n"
        "  ret\n"
        ".size warpsim_enter,.-warpsim_enter\n");
