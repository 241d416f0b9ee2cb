/* An allocator for tensors in which no byte beyond a block can be touched unnoticed.
 *
 * Preloaded into a process, it answers posix_memalign, aligned_alloc and memalign, by which torch and
 * paddle take the memory of tensors on a CPU. Each block ends, as far as its alignment allows, at a
 * page that cannot be read; the page before it cannot be read either; what alignment leaves free
 * after it, and what is left of its first page, holds a pattern that is compared when the block is
 * freed. Addresses are never used twice, so that memory that was freed cannot be read either.
 *
 * cc -shared -fPIC -O2 -o guard.so guard_allocator.c -ldl
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096UL
#define ARENA (1UL << 44)
#define PATTERN 0xA5
#define MAX_BACK 4096UL

typedef struct {
    size_t size, pages, offset;
} Header; /* at the start of the first readable page of a block */

static char *arena;
static atomic_size_t used;
static void (*libc_free)(void *);
static void *(*libc_realloc)(void *, size_t);
static size_t (*libc_usable)(void *);

__attribute__((constructor)) static void start(void) {
    libc_free = dlsym(RTLD_NEXT, "free");
    libc_realloc = dlsym(RTLD_NEXT, "realloc");
    libc_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    void *got = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    arena = got == MAP_FAILED ? NULL : got;
}

static int is_ours(const void *pointer) {
    return arena && (char *)pointer >= arena && (char *)pointer < arena + ARENA;
}

/* No block starts in the page of its header's first bytes: the header has a page of its own. */
static void *take(size_t alignment, size_t size) {
    if (!arena || alignment > PAGE || size > (1UL << 40)) return NULL;
    size_t room = size ? (size + alignment - 1) / alignment * alignment : alignment;
    size_t data_pages = (room + PAGE - 1) / PAGE;
    if (data_pages == 0) data_pages = 1;
    size_t pages = 1 + data_pages; /* header, data; the page after them stays closed */
    size_t at = atomic_fetch_add(&used, (pages + 2) * PAGE);
    if (at + (pages + 2) * PAGE > ARENA) return NULL;
    char *first = arena + at + PAGE;
    if (mprotect(first, pages * PAGE, PROT_READ | PROT_WRITE) != 0) return NULL;
    Header *header = (Header *)first;
    size_t offset = pages * PAGE - room;
    header->size = size;
    header->pages = pages;
    header->offset = offset;
    size_t before = offset - PAGE; /* what is left of the first page of data */
    memset(first + PAGE, PATTERN, before > MAX_BACK ? MAX_BACK : before);
    memset(first + offset + size, PATTERN, room - size);
    if (mprotect(first, PAGE, PROT_READ) != 0) return NULL;
    return first + offset;
}

static Header *header_of(void *pointer) {
    char *page = (char *)((uintptr_t)pointer / PAGE * PAGE);
    /* The block starts in the first page of data, right behind its header's page. */
    return (Header *)(page - PAGE);
}

static void give_back(void *pointer) {
    Header *header = header_of(pointer);
    char *first = (char *)header;
    size_t end = header->pages * PAGE;
    for (size_t i = PAGE; i < header->offset; i++)
        if ((unsigned char)first[i] != PATTERN) goto written;
    for (size_t i = header->offset + header->size; i < end; i++)
        if ((unsigned char)first[i] != PATTERN) goto written;
    size_t bytes = header->pages * PAGE;
    madvise(first, bytes, MADV_DONTNEED);
    mprotect(first, bytes, PROT_NONE);
    return;
written:
    (void)!write(2, "guard: bytes beside a block were written\n", 41);
    abort();
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *got = take(alignment, size);
    if (!got) return ENOMEM;
    *out = got;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t size) {
    void *got = take(alignment, size);
    if (!got) errno = ENOMEM;
    return got;
}

void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }

void free(void *pointer) {
    if (!pointer) return;
    if (is_ours(pointer)) give_back(pointer);
    else if (libc_free) libc_free(pointer);
}

void *realloc(void *pointer, size_t size) {
    if (!is_ours(pointer)) {
        if (!libc_realloc) libc_realloc = dlsym(RTLD_NEXT, "realloc");
        return libc_realloc(pointer, size);
    }
    void *moved = malloc(size);
    if (!moved) return NULL;
    size_t old = header_of(pointer)->size;
    memcpy(moved, pointer, old < size ? old : size);
    free(pointer);
    return moved;
}

size_t malloc_usable_size(void *pointer) {
    if (is_ours(pointer)) return header_of(pointer)->size;
    if (!libc_usable) libc_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    return pointer ? libc_usable(pointer) : 0;
}
