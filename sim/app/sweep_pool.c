#include "sweep_pool.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

/* A list is to last about this long: short enough to lose, long enough that pipes cost nothing. */
#define LIST_US     20000
#define LIST_POINTS 512u
#define LISTS_AHEAD 2u /* given to a worker, the one it is at included */
#define TICK_MS     100

typedef struct {
  guint64 point;
  guint32 len, ok;
} Head; /* of a result, before its text */

typedef struct {
  guint64 n, points[LIST_POINTS];
} List; /* only the points there are go through the pipe */

typedef struct {
  pid_t pid;
  int to, from;    /* -1: closed */
  GByteArray *in;  /* read and not yet taken apart */
  GArray *running; /* guint64 points handed out and not back */
  gint64 since_us; /* when the oldest list began */
} Worker;

typedef struct {
  const PoolJob *job;
  Worker *w;
  guint n, list; /* workers; points in the next list */
  guint64 next;
} Pool;

/* ---- in the worker ---- */

static gboolean
write_whole (int fd, const void *data, gsize len)
{
  const char *p = data;
  while (len > 0) {
    ssize_t n = write (fd, p, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return FALSE;
    p += n;
    len -= (gsize)n;
  }
  return TRUE;
}

static gboolean
read_whole (int fd, void *data, gsize len)
{
  char *p = data;
  while (len > 0) {
    ssize_t n = read (fd, p, len);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return FALSE;
    p += n;
    len -= (gsize)n;
  }
  return TRUE;
}

/* Results go back at once when a point takes long, else some at a time. */
static void
work (const PoolJob *job, int in, int out)
{
  gpointer worker = job->make (job->data);
  GString *lines = g_string_new (NULL), *line = g_string_new (NULL);
  List list;
  while (read_whole (in, &list.n, sizeof list.n) && list.n <= LIST_POINTS &&
         read_whole (in, list.points, list.n * sizeof list.points[0])) {
    gint64 sent_us = g_get_monotonic_time ();
    for (guint64 k = 0; k < list.n; k++) {
      g_string_truncate (line, 0);
      gboolean ok = job->line (worker, list.points[k], line);
      Head head = {.point = list.points[k], .len = (guint32)line->len, .ok = ok ? 1 : 0};
      g_string_append_len (lines, (const char *)&head, sizeof head);
      g_string_append_len (lines, line->str, (gssize)line->len);
      gint64 now_us = g_get_monotonic_time ();
      if (k + 1 < list.n && now_us - sent_us < LIST_US)
        continue;
      if (!write_whole (out, lines->str, lines->len))
        _exit (0); /* lint: allow exit: a child must not run what its parent has at exit */
      g_string_truncate (lines, 0);
      sent_us = now_us;
    }
  }
  g_string_free (lines, TRUE);
  g_string_free (line, TRUE);
  job->unmake (worker);
}

/* Locks and pipes of others are not ours to keep. */
static void
close_others (int a, int b)
{
  guint lo = (guint)MIN (a, b), hi = (guint)MAX (a, b);
  if (lo > 3)
    close_range (3, lo - 1, 0);
  if (hi > lo + 1)
    close_range (lo + 1, hi - 1, 0);
  close_range (hi + 1, ~0u, 0);
}

static void
be_worker (const PoolJob *job, int in, int out, pid_t parent)
{
  prctl (PR_SET_PDEATHSIG, SIGKILL);
  if (getppid () != parent)
    _exit (0);              /* lint: allow exit: a child must not run what its parent has at exit */
  signal (SIGINT, SIG_IGN); /* the parent decides, and lets us finish */
  signal (SIGTERM, SIG_IGN);
  signal (SIGPIPE, SIG_IGN);
  close_others (in, out);
  work (job, in, out);
  _exit (0); /* lint: allow exit: a child must not run what its parent has at exit */
}

/* ---- in the parent ---- */

static gboolean
start_worker (Pool *p, Worker *w, GError **error)
{
  int down[2], up[2];
  pid_t self = getpid ();
  w->to = w->from = -1;
  w->in = g_byte_array_new ();
  w->running = g_array_new (FALSE, FALSE, sizeof (guint64));
  if (socketpair (AF_UNIX, SOCK_STREAM, 0, down) != 0) /* no SIGPIPE when the worker is dead */
    goto failed;
  if (pipe (up) != 0) {
    close (down[0]);
    close (down[1]);
    goto failed;
  }
  w->pid = fork ();
  if (w->pid == 0)
    be_worker (p->job, down[0], up[1], self);
  close (down[0]);
  close (up[1]);
  w->to = down[1];
  w->from = up[0];
  if (w->pid > 0)
    return TRUE;
failed:
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED, "sweep: no worker process (%s)",
               g_strerror (errno));
  return FALSE;
}

static void
close_fd (int *fd)
{
  if (*fd >= 0)
    close (*fd);
  *fd = -1;
}

/* kill_it: what runs is not waited for. Returns what waitpid says. */
static int
end_worker (Worker *w, gboolean kill_it)
{
  int status = 0;
  close_fd (&w->to);
  if (w->pid > 0 && kill_it)
    kill (w->pid, SIGKILL);
  close_fd (&w->from);
  while (w->pid > 0 && waitpid (w->pid, &status, 0) < 0 && errno == EINTR)
    ;
  w->pid = 0;
  return status;
}

static void
worker_clear (Worker *w)
{
  end_worker (w, TRUE);
  if (w->in != NULL)
    g_byte_array_unref (w->in);
  if (w->running != NULL)
    g_array_unref (w->running);
}

/* The next point that is not done, or FALSE. */
static gboolean
next_point (const PoolJob *job, guint64 *next, guint64 *i)
{
  while (*next < job->end) {
    *i = *next;
    *next += job->step;
    if (!job->known (job->data, *i))
      return TRUE;
  }
  return FALSE;
}

static gboolean
stopped (const Pool *p)
{
  return *p->job->stop != 0;
}

/* Gives a list to a worker that soon has nothing to do. A dead worker is noticed when it is read.
 */
static void
feed (Pool *p, Worker *w)
{
  List list = {0};
  guint64 left = p->next < p->job->end ? (p->job->end - p->next - 1) / p->job->step + 1 : 0;
  guint most = (guint)MIN ((guint64)p->list, left / (2 * (guint64)p->n) + 1);
  if (w->to < 0 || w->running->len >= LISTS_AHEAD * p->list - p->list / 2 || stopped (p) ||
      p->job->hold (p->job->data))
    return;
  while (list.n < MIN (most, LIST_POINTS) && next_point (p->job, &p->next, &list.points[list.n]))
    list.n++;
  if (list.n == 0)
    return;
  if (w->running->len == 0)
    w->since_us = g_get_monotonic_time ();
  g_array_append_vals (w->running, list.points, (guint)list.n);
  gsize bytes = G_STRUCT_OFFSET (List, points) + list.n * sizeof list.points[0];
  if (send (w->to, &list, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
    close_fd (&w->to);
}

/* Lists grow and shrink with what points take. */
static void
adapt (Pool *p, Worker *w, guint taken)
{
  gint64 now_us = g_get_monotonic_time (), each_us = MAX ((now_us - w->since_us) / taken, 1);
  w->since_us = now_us;
  guint fit = (guint)CLAMP (LIST_US / each_us, 1, LIST_POINTS);
  p->list = CLAMP (fit, MAX (p->list / 2, 1), MIN (p->list * 2, LIST_POINTS));
}

static void
forget_running (Worker *w, guint64 point)
{
  for (guint i = 0; i < w->running->len; i++)
    if (g_array_index (w->running, guint64, i) == point) {
      g_array_remove_index (w->running, i);
      return;
    }
}

static gboolean
take_results (Pool *p, Worker *w, GError **error)
{
  gsize at = 0;
  guint taken = 0;
  for (Head head; w->in->len - at >= sizeof head; taken++) {
    memcpy (&head, w->in->data + at, sizeof head);
    if (w->in->len - at - sizeof head < head.len)
      break;
    forget_running (w, head.point);
    if (!p->job->result (p->job->data, head.point, head.ok != 0,
                         (const char *)w->in->data + at + sizeof head, head.len, error))
      return FALSE;
    at += sizeof head + head.len;
  }
  if (taken == 0)
    return TRUE;
  g_byte_array_remove_range (w->in, 0, (guint)at);
  adapt (p, w, taken);
  return p->job->flush (p->job->data, error);
}

static gboolean
died (Worker *w, GError **error)
{
  guint64 point = w->running->len > 0 ? g_array_index (w->running, guint64, 0) : 0;
  int status = end_worker (w, FALSE);
  const char *how = WIFSIGNALED (status) ? g_strsignal (WTERMSIG (status)) : "it ended by itself";
  g_set_error (error, CLI_ERROR, CLI_ERROR_FAILED,
               "sweep: a worker process died at point %" G_GUINT64_FORMAT " (%s)", point, how);
  return FALSE;
}

static gboolean
read_worker (Pool *p, Worker *w, GError **error)
{
  guint8 buf[65536];
  ssize_t n = read (w->from, buf, sizeof buf);
  if (n < 0 && errno == EINTR)
    return TRUE;
  if (n <= 0)
    return died (w, error);
  g_byte_array_append (w->in, buf, (guint)n);
  return take_results (p, w, error);
}

static gboolean
one_round (Pool *p, gboolean *busy, GError **error)
{
  g_autofree struct pollfd *fds = g_new0 (struct pollfd, p->n);
  *busy = FALSE;
  for (guint k = 0; k < p->n; k++) {
    feed (p, &p->w[k]);
    *busy = *busy || p->w[k].running->len > 0;
    fds[k] = (struct pollfd){.fd = p->w[k].from, .events = POLLIN};
  }
  if (!*busy || *p->job->stop > 1)
    return TRUE;
  int ready = poll (fds, p->n, TICK_MS);
  for (guint k = 0; ready > 0 && k < p->n; k++)
    if (fds[k].revents != 0 && !read_worker (p, &p->w[k], error))
      return FALSE;
  p->job->tick (p->job->data);
  return TRUE;
}

static gboolean
run_processes (const PoolJob *job, GError **error)
{
  Pool p = {.job = job, .n = job->jobs, .list = 1, .next = job->first};
  gboolean ok = TRUE, busy = TRUE;
  p.w = g_new0 (Worker, job->jobs);
  for (guint k = 0; ok && k < p.n; k++)
    ok = start_worker (&p, &p.w[k], error);
  while (ok && busy && *job->stop < 2)
    ok = one_round (&p, &busy, error);
  for (guint k = 0; k < p.n; k++)
    close_fd (&p.w[k].to);
  for (guint k = 0; k < p.n; k++)
    worker_clear (&p.w[k]);
  g_free (p.w);
  return ok;
}

static gboolean
run_here (const PoolJob *job, GError **error)
{
  gpointer worker = job->make (job->data);
  g_autoptr (GString) line = g_string_new (NULL);
  guint64 next = job->first, i;
  gboolean ok = TRUE;
  while (ok && *job->stop == 0 && next_point (job, &next, &i)) {
    g_string_truncate (line, 0);
    gboolean done = job->line (worker, i, line);
    ok = job->result (job->data, i, done, line->str, line->len, error) &&
         job->flush (job->data, error);
    job->tick (job->data);
  }
  job->unmake (worker);
  return ok;
}

gboolean
sweep_pool_run (const PoolJob *job, GError **error)
{
  g_assert (job->jobs >= 1 && job->step >= 1);
  return job->jobs == 1 ? run_here (job, error) : run_processes (job, error);
}
