/* text: strings that came from outside, made fit for one line of a message. */
#ifndef CLUSTERSIM_TEXT_H
#define CLUSTERSIM_TEXT_H

#include <glib.h>

/* A copy of s (len bytes, or -1 for NUL-terminated) in which control characters, line separators,
 * characters that change the direction of writing, and bytes that are not UTF-8 are written as \n,
 * \u001b or \xff, and that is cut to max_chars characters and "..." when longer. The result is
 * valid UTF-8 in one line. Newly allocated, free with g_free. */
char *text_printable (const char *s, gssize len, gsize max_chars);

/* text_printable between double quotes, quotes and backslashes escaped, cut to what a message
 * bears. */
char *text_quoted (const char *s);

/* "a, b, c" of the first max names, then "…and N more"; newly allocated. "none" for no names. */
char *text_list (const char *const *names, guint max);

#endif
