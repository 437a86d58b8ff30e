/* sched_table: the table itself: print, and micro-batches in flight. Parsing is in sched_parse.c,
 * checks and the dry run in sched_verify.c. */
#include "sched.h"

#include <string.h>

G_DEFINE_QUARK (sched - error - quark, sched_error)

static const char kind_letters[] = "FBIW";

void
sched_table_free (SchedTable *t)
{
  if (!t)
    return;
  g_free (t->first);
  g_free (t->actions);
  g_free (t->stage_rank);
  g_free (t);
}

static char *
put_number (char *to, guint32 n)
{
  char digits[10];
  int len = 0;

  do
    digits[len++] = (char)('0' + n % 10);
  while (n /= 10);
  while (len > 0)
    *to++ = digits[--len];
  return to;
}

static char *
put_action (char *to, const SchedAction *a)
{
  to = put_number (to, a->stage);
  *to++ = a->kind < 4 ? kind_letters[a->kind] : '?';
  return put_number (to, a->microbatch);
}

void
sched_action_text (const SchedAction *a, char text[SCHED_ACTION_CHARS])
{
  *put_action (text, a) = '\0';
}

static void
print_row (const SchedTable *t, guint rank, GString *out)
{
  g_string_append_printf (out, "rank %u:", rank);
  for (guint32 i = t->first[rank]; i < t->first[rank + 1]; i++) {
    const SchedAction *a = &t->actions[i];
    gboolean second = i > t->first[rank] && a[-1].pair;
    char text[SCHED_ACTION_CHARS + 4], *to = text;

    *to++ = second ? ';' : ' ';
    if (a->pair)
      *to++ = '(';
    to = put_action (to, a);
    if (second)
      *to++ = ')';
    g_string_append_len (out, text, to - text);
    if (second)
      g_string_append (out, "OVERLAP_F_B");
  }
  g_string_append_c (out, '\n');
}

char *
sched_print (const SchedTable *t)
{
  GString *out = g_string_sized_new ((gsize)t->first[t->ranks] * 6 + 64);

  if (t->pipelines > 1)
    g_string_append_printf (out, "pipelines %u\n", t->pipelines);
  for (guint r = 0; r < t->ranks; r++)
    print_row (t, r, out);
  return g_string_free (out, FALSE);
}

/* What F adds goes with B or with W: I alone still needs the activations for the weights. */
static int
held_change (const SchedAction *a)
{
  switch ((SchedKind)a->kind) {
  case SCHED_F:
    return 1;
  case SCHED_B:
  case SCHED_W:
    return -1;
  case SCHED_I:
    break;
  }
  return 0;
}

void
sched_peak_in_flight (const SchedTable *t, guint rank, guint32 *in_flight)
{
  g_autofree guint32 *now = g_new0 (guint32, t->stages);

  g_assert (rank < t->ranks);
  memset (in_flight, 0, t->stages * sizeof in_flight[0]);
  for (guint32 i = t->first[rank]; i < t->first[rank + 1]; i++) {
    const SchedAction *a = &t->actions[i];

    now[a->stage] += (guint32)held_change (a);
    in_flight[a->stage] = MAX (in_flight[a->stage], now[a->stage]);
  }
}

double
sched_peak_weighted (const SchedTable *t, guint rank, const double *weight)
{
  double now = 0, peak = 0;

  g_assert (rank < t->ranks);
  for (guint32 i = t->first[rank]; i < t->first[rank + 1]; i++) {
    now += held_change (&t->actions[i]) * weight[t->actions[i].stage];
    peak = MAX (peak, now);
  }
  return peak;
}
