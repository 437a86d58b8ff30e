#include "chakra_et.h"

#include <string.h>

#include "cli.h"

/* Wire types of protocol buffers (protobuf.dev, encoding). */
enum { WIRE_VARINT, WIRE_64BIT, WIRE_BYTES, WIRE_32BIT = 5 };

/* Field numbers of the schema. */
enum { NODE_NAME = 2, NODE_TYPE = 3, NODE_DURATION = 7, NODE_ATTR = 10 };
enum { ATTR_NAME = 1, ATTR_BOOL = 27 };

typedef struct {
  const guint8 *p, *end;
} Bytes;

typedef struct {
  guint64 number;
  guint wire;
  guint64 value; /* of a varint */
  Bytes body;    /* of bytes */
} Field;

static gboolean
varint (Bytes *b, guint64 *out)
{
  *out = 0;
  for (guint shift = 0; shift < 70 && b->p < b->end; shift += 7) {
    guint8 byte = *b->p++;
    if (shift < 64)
      *out |= (guint64)(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0)
      return TRUE;
  }
  return FALSE;
}

static gboolean
take (Bytes *b, guint64 n, Bytes *out)
{
  if (n > (guint64)(b->end - b->p))
    return FALSE;
  *out = (Bytes){b->p, b->p + n};
  b->p += n;
  return TRUE;
}

/* The next field; FALSE when the bytes are no field. */
static gboolean
next_field (Bytes *b, Field *f)
{
  guint64 key = 0, n = 0;
  if (!varint (b, &key))
    return FALSE;
  f->number = key >> 3;
  f->wire = (guint)(key & 7);
  f->value = 0;
  f->body = (Bytes){NULL, NULL};
  if (f->number == 0)
    return FALSE;
  switch (f->wire) {
  case WIRE_VARINT:
    return varint (b, &f->value);
  case WIRE_64BIT:
    return take (b, 8, &f->body);
  case WIRE_BYTES:
    return varint (b, &n) && take (b, n, &f->body);
  case WIRE_32BIT:
    return take (b, 4, &f->body);
  default:
    return FALSE;
  }
}

static gboolean
is_text (const Bytes *b, const char *text)
{
  return (gsize)(b->end - b->p) == strlen (text) && memcmp (b->p, text, strlen (text)) == 0;
}

/* Whichever of the value's fields is set: bool, int or uint. */
static gboolean
attribute (Bytes b, ChakraNode *node)
{
  Field f;
  Bytes name = {NULL, NULL};
  guint64 value = 0;
  while (b.p < b.end) {
    if (!next_field (&b, &f))
      return FALSE;
    if (f.number == ATTR_NAME && f.wire == WIRE_BYTES)
      name = f.body;
    else if (f.wire == WIRE_VARINT && f.number <= ATTR_BOOL)
      value = f.value;
  }
  if (name.p == NULL)
    return TRUE;
  if (is_text (&name, "is_cpu_op"))
    node->cpu = value != 0;
  else if (is_text (&name, "comm_type"))
    node->comm_type = (gint64)MIN (value, G_MAXINT32);
  return TRUE;
}

static gboolean
read_node (Bytes b, ChakraNode *node)
{
  Field f;
  *node = (ChakraNode){.comm_type = -1};
  while (b.p < b.end) {
    if (!next_field (&b, &f))
      return FALSE;
    if (f.number == NODE_NAME && f.wire == WIRE_BYTES) {
      node->name = (const char *)f.body.p;
      node->name_len = (gsize)(f.body.end - f.body.p);
    } else if (f.number == NODE_TYPE && f.wire == WIRE_VARINT) {
      node->type = f.value;
    } else if (f.number == NODE_DURATION && f.wire == WIRE_VARINT) {
      node->has_duration = TRUE;
      node->duration_us = (double)f.value;
    } else if (f.number == NODE_ATTR && f.wire == WIRE_BYTES && !attribute (f.body, node)) {
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
chakra_et_walk (const guint8 *bytes, gsize len, ChakraNodeFn fn, gpointer data, GError **error)
{
  Bytes all = {bytes, bytes + len}, message;
  for (gboolean first = TRUE; all.p < all.end; first = FALSE) {
    gsize at = (gsize)(all.p - bytes);
    guint64 n = 0;
    ChakraNode node;
    if (!varint (&all, &n) || !take (&all, n, &message) || !read_node (message, &node)) {
      g_set_error (error, CLI_ERROR, CLI_ERROR_USAGE,
                   "byte %" G_GSIZE_FORMAT
                   ": no whole message of a Chakra trace (allowed: messages "
                   "behind their length, et_def.proto)",
                   at);
      return FALSE;
    }
    if (!first) /* global metadata */
      fn (&node, data);
  }
  return TRUE;
}
