/* A sweep into a file: the journal while it runs, the lines in order at the end. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "fileio.h"
#include "sweep_sink.h"

#define MAGIC      "clustersim-sweep 1 "
#define LINE_BYTES ((gsize)64 << 20) /* no line of ours is longer */

typedef struct {
  SweepSink base;
  char *path; /* of the journal */
  int fd;
  guint64 at, n;   /* length of the journal; points of this sweep */
  guint64 *offset; /* n: where a point's record begins, + 1; 0: not there. In a file without a
                    * name, so that millions of points take disk and not memory */
  GString *buffer; /* records not yet written */
} Journal;

static gboolean
io_error (const Journal *j, const char *what, GError **error)
{
  g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_WRITE, "%s: %s (%s)", j->path, what,
               g_strerror (errno));
  return FALSE;
}

static guint64
slot_of (const Journal *j, guint64 i)
{
  return (i - j->base.plan.first) / j->base.plan.step;
}

static gboolean
journal_known (const SweepSink *s, guint64 i)
{
  const Journal *j = (const Journal *)s;
  return j->offset[slot_of (j, i)] != 0;
}

static gboolean
journal_hold (const SweepSink *s G_GNUC_UNUSED)
{
  return FALSE;
}

static void
note (Journal *j, guint64 i, gboolean ok, guint64 at)
{
  j->offset[slot_of (j, i)] = at + 1;
  j->base.done++;
  j->base.failed += ok ? 0 : 1;
}

static gboolean
journal_put (SweepSink *s, guint64 i, gboolean ok, const char *line, gsize len,
             GError **error G_GNUC_UNUSED)
{
  Journal *j = (Journal *)s;
  note (j, i, ok, j->at + j->buffer->len);
  g_string_append_printf (j->buffer, "%c%" G_GUINT64_FORMAT " %" G_GSIZE_FORMAT " ", ok ? '+' : '-',
                          i, len);
  g_string_append_len (j->buffer, line, (gssize)len);
  return TRUE;
}

static gboolean
journal_flush (SweepSink *s, GError **error)
{
  Journal *j = (Journal *)s;
  for (gsize done = 0; done < j->buffer->len;) {
    ssize_t n = write (j->fd, j->buffer->str + done, j->buffer->len - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return io_error (j, "cannot be written", error);
    done += (gsize)n;
  }
  j->at += j->buffer->len;
  g_string_truncate (j->buffer, 0);
  return TRUE;
}

/* ---- taking up ---- */

/* The record at the stream's place: FALSE at the end or when it is cut off or damaged. */
static gboolean
read_record (FILE *in, guint64 *i, gboolean *ok, GString *line)
{
  char sign, digits[2][24];
  for (int k = 0; k < 2; k++) {
    gsize n = 0;
    int c = getc (in);
    if (k == 0) {
      sign = (char)c;
      if (c != '+' && c != '-')
        return FALSE;
      *ok = sign == '+';
      c = getc (in);
    }
    for (; g_ascii_isdigit (c) && n < sizeof digits[k] - 1; c = getc (in))
      digits[k][n++] = (char)c;
    digits[k][n] = '\0';
    if (n == 0 || c != ' ')
      return FALSE;
  }
  guint64 len;
  if (!g_ascii_string_to_unsigned (digits[0], 10, 0, G_MAXUINT64, i, NULL) ||
      !g_ascii_string_to_unsigned (digits[1], 10, 1, LINE_BYTES, &len, NULL))
    return FALSE;
  g_string_set_size (line, len);
  return fread (line->str, 1, len, in) == len && line->str[len - 1] == '\n';
}

/* Reads what is there and cuts off what is not whole. */
static gboolean
take_up (Journal *j, GError **error)
{
  const SinkPlan *plan = &j->base.plan;
  g_autofree char *head = NULL;
  int copy = dup (j->fd);
  FILE *in = copy >= 0 ? fdopen (copy, "r") : NULL;
  if (in == NULL)
    return io_error (j, "cannot be read", error);
  rewind (in);
  gsize size = strlen (MAGIC) + strlen (plan->identity) + 2;
  head = g_malloc0 (size + 1);
  gboolean same = fgets (head, (int)size, in) != NULL && g_str_has_prefix (head, MAGIC) &&
                  strncmp (head + strlen (MAGIC), plan->identity, strlen (plan->identity)) == 0 &&
                  g_str_has_suffix (head, "\n");
  g_autoptr (GString) line = g_string_new (NULL);
  guint64 i;
  gboolean ok;
  j->at = (guint64)ftello (in);
  while (same && read_record (in, &i, &ok, line)) {
    gboolean ours = i >= plan->first && i < plan->end && (i - plan->first) % plan->step == 0;
    if (!ours || journal_known (&j->base, i))
      break;
    note (j, i, ok, j->at);
    if (plan->taken != NULL)
      plan->taken (plan->data, i, line->str, line->len);
    j->at = (guint64)ftello (in);
  }
  fclose (in);
  if (!same)
    return sweep_part_other (j->path, &j->base.plan, error);
  if (ftruncate (j->fd, (off_t)j->at) != 0 || lseek (j->fd, (off_t)j->at, SEEK_SET) < 0)
    return io_error (j, "cannot be written", error);
  return TRUE;
}

static gboolean
begin (Journal *j, GError **error)
{
  g_string_append_printf (j->buffer, MAGIC "%s\n", j->base.plan.identity);
  return journal_flush (&j->base, error);
}

/* ---- ending ---- */

/* Copies the record of a point, without its head, to out. */
static gboolean
copy_line (Journal *j, guint64 at, GString *buf, FILE *out)
{
  gsize want = 4096;
  for (;;) {
    g_string_set_size (buf, want);
    ssize_t n = pread (j->fd, buf->str, want, (off_t)at);
    if (n <= 0)
      return FALSE;
    char *space = memchr (buf->str, ' ', (gsize)n), *end = NULL;
    if (space == NULL)
      return FALSE;
    guint64 len = g_ascii_strtoull (space + 1, &end, 10);
    gsize head = (gsize)(end + 1 - buf->str);
    if (*end != ' ' || len > LINE_BYTES)
      return FALSE;
    if (head + len <= (gsize)n)
      return fwrite (end + 1, 1, len, out) == len;
    if (want >= head + len)
      return FALSE;
    want = head + len;
  }
}

static gboolean
journal_finish (SweepSink *s, GError **error)
{
  Journal *j = (Journal *)s;
  g_autoptr (Output) out = output_open (s->plan.output, error);
  g_autoptr (GString) buf = g_string_new (NULL);
  if (out == NULL)
    return FALSE;
  fputs (s->plan.header, output_stream (out));
  for (guint64 k = 0; k < j->n; k++) {
    g_assert (j->offset[k] != 0);
    errno = 0;
    if (!copy_line (j, j->offset[k] - 1, buf, output_stream (out)))
      return io_error (j, "cannot be copied", error);
  }
  if (!output_commit (g_steal_pointer (&out), error))
    return FALSE;
  g_unlink (j->path);
  return TRUE;
}

static void
journal_drop (SweepSink *s)
{
  g_unlink (((Journal *)s)->path);
}

static void
journal_close (SweepSink *s)
{
  Journal *j = (Journal *)s;
  if (j->offset != NULL)
    munmap (j->offset, MAX (j->n, 1) * sizeof j->offset[0]);
  if (j->fd >= 0)
    close (j->fd);
  g_string_free (j->buffer, TRUE);
  g_free (j->path);
  g_free (j);
}

/* ---- opening ---- */

static gboolean
map_offsets (Journal *j, GError **error)
{
  g_autofree char *name = g_strconcat (j->path, ".XXXXXX", NULL);
  int fd = g_mkstemp (name);
  if (fd < 0)
    return io_error (j, "cannot be written", error);
  g_unlink (name);
  gsize bytes = MAX (j->n, 1) * sizeof j->offset[0];
  void *map = ftruncate (fd, (off_t)bytes) == 0
                  ? mmap (NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
  int number = errno;
  close (fd);
  errno = number;
  if (map == MAP_FAILED)
    return io_error (j, "no room for the list of points", error);
  j->offset = map;
  return TRUE;
}

static gboolean
open_part (Journal *j, GError **error)
{
  const SinkPlan *plan = &j->base.plan;
  struct stat st;
  j->fd = open (j->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (j->fd < 0) { /* the user knows the file by its own name */
    g_set_error (error, FILEIO_ERROR, FILEIO_ERROR_OPEN, "%s: cannot be written (%s)", plan->output,
                 g_strerror (errno));
    return FALSE;
  }
  if (flock (j->fd, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? sweep_part_locked (j->path, plan, error)
                                : io_error (j, "cannot be locked", error);
  if (fstat (j->fd, &st) != 0)
    return io_error (j, "cannot be read", error);
  if (st.st_size > 0 && !plan->resume)
    return sweep_part_exists (j->path, plan, error);
  if (!map_offsets (j, error))
    return FALSE;
  return st.st_size > 0 ? take_up (j, error) : begin (j, error);
}

SweepSink *
sweep_journal_open (const SinkPlan *plan, GError **error)
{
  static const SinkOps ops = {journal_known,  journal_hold, journal_put,  journal_flush,
                              journal_finish, journal_drop, journal_close};
  Journal *j = g_new0 (Journal, 1);
  j->base.ops = &ops;
  j->base.plan = *plan;
  j->base.resumable = TRUE;
  j->path = g_strconcat (plan->output, ".part", NULL);
  j->fd = -1;
  j->n = plan->end > plan->first ? (plan->end - plan->first - 1) / plan->step + 1 : 0;
  j->buffer = g_string_new (NULL);
  if (open_part (j, error))
    return &j->base;
  journal_close (&j->base);
  return NULL;
}
