/* Integer expressions of named sizes: expression = term { + - term }, term = factor { * / factor },
 * factor = number, name or ( expression ). */
#include <string.h>

#include "read_graph.h"

#define DEEPEST 32

typedef struct {
  const char *at;
  const NamedSize *sizes;
  guint n, depth;
  const char *why; /* the first thing wrong, or NULL */
} Parser;

static gint64 sum (Parser *p);

static void
skip_blanks (Parser *p)
{
  while (*p->at == ' ')
    p->at++;
}

static gint64
wrong (Parser *p, const char *why)
{
  if (p->why == NULL)
    p->why = why;
  return 0;
}

static gint64
name (Parser *p)
{
  gsize len = 0;
  while (g_ascii_isalnum (p->at[len]) || p->at[len] == '_')
    len++;
  for (guint i = 0; i < p->n; i++)
    if (strlen (p->sizes[i].name) == len && strncmp (p->sizes[i].name, p->at, len) == 0) {
      p->at += len;
      return p->sizes[i].value;
    }
  return wrong (p, "there is no such size");
}

static gint64
factor (Parser *p)
{
  skip_blanks (p);
  if (g_ascii_isdigit (*p->at)) {
    char *end = NULL;
    gint64 v = g_ascii_strtoll (p->at, &end, 10);
    p->at = end;
    return v > G_MAXINT32 ? wrong (p, "a number is out of range") : v;
  }
  if (g_ascii_isalpha (*p->at))
    return name (p);
  if (*p->at != '(')
    return wrong (p, "a number, a size or ( is needed");
  if (++p->depth > DEEPEST)
    return wrong (p, "too many brackets");
  p->at++;
  gint64 v = sum (p);
  skip_blanks (p);
  if (*p->at != ')')
    return wrong (p, "a bracket is open");
  p->at++;
  return v;
}

static gint64
product (Parser *p)
{
  gint64 v = factor (p);
  for (skip_blanks (p); p->why == NULL && (*p->at == '*' || *p->at == '/'); skip_blanks (p)) {
    gboolean times = *p->at++ == '*';
    gint64 w = factor (p);
    if (!times && w == 0)
      return wrong (p, "division by zero");
    if (times && w != 0 && ABS (v) > (G_GINT64_CONSTANT (1) << 62) / ABS (w))
      return wrong (p, "the product is out of range");
    v = times ? v * w : v / w;
  }
  return v;
}

static gint64
sum (Parser *p)
{
  gint64 v = product (p);
  for (skip_blanks (p); p->why == NULL && (*p->at == '+' || *p->at == '-'); skip_blanks (p)) {
    gboolean plus = *p->at++ == '+';
    gint64 w = product (p);
    v = plus ? v + w : v - w;
    if (ABS (v) > (G_GINT64_CONSTANT (1) << 62))
      return wrong (p, "the sum is out of range");
  }
  return v;
}

gboolean
size_expression (const char *text, const NamedSize *sizes, guint n, gint64 *out, const char **why)
{
  Parser p = {.at = text, .sizes = sizes, .n = n};
  gint64 v = sum (&p);
  skip_blanks (&p);
  if (p.why == NULL && *p.at != '\0')
    wrong (&p, "there is text behind the end");
  if (p.why == NULL && (v < 0 || v > G_MAXINT32))
    wrong (&p, "the result is out of range (0 to 2147483647)");
  *why = p.why;
  if (p.why == NULL)
    *out = v;
  return p.why == NULL;
}
