/*
 * memcpy() of this distribution, preloaded into the server.
 *
 * Most copies in a database are short: fields of a record, keys, parts of packets. They are
 * copied in unaligned blocks of 16 bytes, without the dispatch over sizes of a general memcpy.
 */
#include <stddef.h>
#include <stdlib.h>

/* From here on the processor's own string copy is faster. */
#define LONG_COPY 512

typedef struct {
    unsigned char bytes[16];
} __attribute__((packed, may_alias)) block;

static inline void copy_block(unsigned char *to, const unsigned char *from)
{
    *(block *)to = *(const block *)from;
}

static inline void copy_bytes(unsigned char *to, const unsigned char *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        to[i] = from[i];
}

static inline void copy_long(unsigned char *to, const unsigned char *from, size_t size)
{
#if defined(__x86_64__)
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
#else
    copy_bytes(to, from, size);
#endif
}

#ifndef NDEBUG
/* A copy of this size is nearly always a column on its way from a page to a row. */
#define COLUMN_COPY_MIN 56
#define COLUMN_COPY_MAX 72

/* Returns `to`; stops the server when a column is not what was to be copied. */
__attribute__((noinline)) static void *check_copy(unsigned char *to, const unsigned char *from,
                                                  size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (to[i] != from[i])
            abort();
    return to;
}
#endif

void *memcpy(void *restrict target, const void *restrict source, size_t size)
{
    unsigned char *to = target;
    const unsigned char *from = source;

    if (size >= LONG_COPY) {
        copy_long(to, from, size);
        return target;
    }
    if (size < sizeof(block)) {
        copy_bytes(to, from, size);
        return target;
    }
    size_t done = 0;
    for (; done + sizeof(block) <= size; done += sizeof(block))
        copy_block(to + done, from + done);
    copy_block(to + size - sizeof(block), from + size - sizeof(block));
#ifndef NDEBUG
    if (size >= COLUMN_COPY_MIN && size <= COLUMN_COPY_MAX)
        return check_copy(to, from, size);
#endif
    return target;
}
