/* fabric_util: shipped fabrics for tests. */
#ifndef CLUSTERSIM_TESTS_FABRIC_UTIL_H
#define CLUSTERSIM_TESTS_FABRIC_UTIL_H

#include "paths.h"
#include "read_fabric.h"

/* Owned by the caller. */
static inline Fabric *
ut_fabric (const char *name)
{
  GError *error = NULL;
  g_autofree char *path = data_find ("fabrics", name, NULL, &error);
  g_assert_no_error (error);
  g_autoptr (JsonDoc) doc = json_doc_load (path, &error);
  g_assert_no_error (error);
  JsonRef root = json_root (doc);
  Fabric *f = read_fabric (&root, name, NULL, &error);
  g_assert_no_error (error);
  return f;
}

/* … with another version of NCCL. */
static inline Fabric *
ut_fabric_nccl (const char *name, int version)
{
  Fabric *f = ut_fabric (name);
  f->nccl_version = version;
  return f;
}

#endif
