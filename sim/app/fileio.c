#include "fileio.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

G_DEFINE_QUARK (clustersim_fileio_error, fileio_error)

struct Output {
  FILE *stream;
  char *name;   /* as messages name it */
  char *target; /* where it belongs, links followed; NULL when written directly */
  char *temp;   /* where it is until commit; NULL when written directly */
};

static gboolean
io_fail (const char *name, FileioError code, const char *what, int number, GError **error)
{
  g_autofree char *plain = text_printable (name, -1, G_MAXSIZE);
  g_set_error (error, FILEIO_ERROR, (int)code, "%s: %s (%s)", plain, what, g_strerror (number));
  return FALSE;
}

static void
output_free (Output *o)
{
  g_free (o->name);
  g_free (o->target);
  g_free (o->temp);
  g_free (o);
}

/* What a new file of this program may be used for: as open() would give it, or as it was before. */
static mode_t
mode_for (const char *target)
{
  struct stat st;
  if (stat (target, &st) == 0)
    return st.st_mode & 0777;
  mode_t mask = umask (0);
  umask (mask);
  return 0666 & ~mask;
}

static gboolean
open_beside (Output *o, GError **error)
{
  o->temp = g_strconcat (o->target, ".XXXXXX", NULL);
  int fd = g_mkstemp_full (o->temp, O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0) {
    io_fail (o->name, FILEIO_ERROR_OPEN, "cannot be written", errno, error);
    g_clear_pointer (&o->temp, g_free);
    return FALSE;
  }
  /* A file system without modes is no reason to give up. */
  if (fchmod (fd, mode_for (o->target)) != 0)
    errno = 0;
  o->stream = fdopen (fd, "w");
  g_assert (o->stream != NULL);
  return TRUE;
}

Output *
output_open (const char *path, GError **error)
{
  g_autoptr (Output) o = g_new0 (Output, 1);
  if (path == NULL || strcmp (path, "-") == 0) {
    o->name = g_strdup ("standard output");
    o->stream = stdout;
    return g_steal_pointer (&o);
  }
  o->name = g_strdup (path);
  if (*path == '\0') {
    io_fail ("the empty file name", FILEIO_ERROR_OPEN, "cannot be written", ENOENT, error);
    return NULL;
  }
  struct stat st;
  gboolean exists = stat (path, &st) == 0;
  if (exists && S_ISDIR (st.st_mode)) {
    io_fail (path, FILEIO_ERROR_OPEN, "cannot be written", EISDIR, error);
    return NULL;
  }
  if (exists && !S_ISREG (st.st_mode)) {
    o->stream = fopen (path, "we");
    if (o->stream == NULL) {
      io_fail (path, FILEIO_ERROR_OPEN, "cannot be written", errno, error);
      return NULL;
    }
    return g_steal_pointer (&o);
  }
  if (exists && access (path, W_OK) != 0) { /* renaming would get round the file's own mode */
    io_fail (path, FILEIO_ERROR_OPEN, "cannot be written", errno, error);
    return NULL;
  }
  char *real = exists ? realpath (path, NULL) : NULL; /* a link stays a link */
  o->target = g_strdup (real != NULL ? real : path);
  free (real);
  return open_beside (o, error) ? g_steal_pointer (&o) : NULL;
}

FILE *
output_stream (Output *o)
{
  return o->stream;
}

void
output_abort (Output *o)
{
  if (o == NULL)
    return;
  if (o->stream != NULL && o->stream != stdout)
    fclose (o->stream);
  if (o->temp != NULL)
    g_unlink (o->temp);
  output_free (o);
}

gboolean
output_commit (Output *o, GError **error)
{
  /* ferror: an earlier write failed, and errno is not that of now. */
  gboolean failed = ferror (o->stream) != 0;
  int number = failed ? EIO : 0;
  if (fflush (o->stream) != 0) {
    failed = TRUE;
    number = errno;
  }
  /* The data must be on the disk before the name is: else a crash can leave an empty file. */
  if (!failed && o->temp != NULL && fsync (fileno (o->stream)) != 0 && errno != EINVAL) {
    failed = TRUE;
    number = errno;
  }
  FILE *stream = g_steal_pointer (&o->stream);
  if (stream != stdout && fclose (stream) != 0 && !failed) {
    failed = TRUE;
    number = errno;
  }
  if (!failed && o->temp != NULL && g_rename (o->temp, o->target) != 0) {
    failed = TRUE;
    number = errno;
  }
  if (!failed)
    g_clear_pointer (&o->temp, g_free);
  else
    io_fail (o->name, FILEIO_ERROR_WRITE, "cannot be written", number, error);
  output_abort (o);
  return !failed;
}

gboolean
output_write (const char *path, const char *data, gssize len, GError **error)
{
  gsize n = len < 0 ? strlen (data) : (gsize)len;
  Output *o = output_open (path, error);
  if (o == NULL)
    return FALSE;
  if (n > 0 && fwrite (data, 1, n, o->stream) != n) {
    io_fail (o->name, FILEIO_ERROR_WRITE, "cannot be written", errno, error);
    output_abort (o);
    return FALSE;
  }
  return output_commit (o, error);
}
