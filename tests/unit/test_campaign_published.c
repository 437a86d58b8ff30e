/* Every shipped campaign with a published outcome: within three points of it. Failure profiles and
 * prices that ship can be read, and each of their numbers has a source. */
#include "campaign_job_load.h"
#include "paths.h"
#include "read_job.h"
#include "scenario.h"
#include "scenario_priv.h"

#include <math.h>

static void
test_outcomes (void)
{
  g_auto (GStrv) names = data_list ("campaign");
  guint n = 0;
  for (guint i = 0; names[i] != NULL; i++) {
    GError *error = NULL;
    g_autoptr (JsonDoc) doc = scenario_document (names[i], NULL, &error);
    g_assert_no_error (error);
    g_auto (LoadedJob) job = {0};
    g_assert_true (campaign_job_load (doc, &job, &error));
    g_assert_no_error (error);
    const JobSpec *j = &job.job;
    for (guint k = 0; k < j->inputs->len; k++) {
      const JobInput *in = g_ptr_array_index (j->inputs, k);
      g_assert_cmpstr (in->source, !=, "");
    }
    if (j->published_source == NULL)
      continue;
    CampaignResult r;
    CampaignOptions o = {.replicas = 40, .seed = 3};
    g_assert_true (campaign_run (j, &o, &r, &error));
    double off = r.goodput.mean < j->published_lo   ? r.goodput.mean - j->published_lo
                 : r.goodput.mean > j->published_hi ? r.goodput.mean - j->published_hi
                                                    : 0.0;
    g_test_message ("%-24s %.4f +- %.4f, published %.4f, off by %+.2f points", names[i],
                    r.goodput.mean, r.goodput.std_error, j->published_goodput, 100 * off);
    g_assert_cmpfloat (fabs (off), <=, 0.03);
    g_assert_cmpuint (r.stuck, ==, 0);
    n++;
  }
  g_assert_cmpuint (n, >=, 18);
}

static void
test_profiles (void)
{
  g_auto (GStrv) failures = data_list ("failures"), prices = data_list ("prices");
  for (guint i = 0; failures[i] != NULL; i++) {
    GError *error = NULL;
    g_autoptr (GPtrArray) inputs = g_ptr_array_new_with_free_func ((GDestroyNotify)job_input_free);
    g_autofree char *path = data_find ("failures", failures[i], NULL, &error);
    g_autoptr (JsonDoc) doc = scenario_load_chain (path, "failures", &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    FaultProfile p;
    g_assert_true (read_failures (&root, &p, inputs, &error));
    g_assert_no_error (error);
    double mtbf_h = 1 / fault_profile_rate (&p, 1000, 8) / 3600;
    g_test_message ("%-20s a stop every %.2f h on 1000 nodes", failures[i], mtbf_h);
    fault_profile_clear (&p);
  }
  for (guint i = 0; prices[i] != NULL; i++) {
    GError *error = NULL;
    g_autofree char *path = data_find ("prices", prices[i], NULL, &error);
    g_autoptr (JsonDoc) doc = scenario_load_chain (path, "prices", &error);
    g_assert_no_error (error);
    JsonRef root = json_root (doc);
    const char *date = NULL;
    g_assert_true (json_opt_string (&root, "date", &date, &error));
    g_assert_nonnull (date);
    CostSpec c;
    cost_init (&c);
    g_assert_true (read_prices (&root, &c, NULL, &error));
    g_assert_no_error (error);
  }
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_set_nonfatal_assertions ();
  g_test_add_func ("/campaign-published/outcomes", test_outcomes);
  g_test_add_func ("/campaign-published/profiles", test_profiles);
  return g_test_run ();
}
