/* report_net: which fidelity priced which group's collectives, and what the network added. */
#ifndef CLUSTERSIM_REPORT_NET_H
#define CLUSTERSIM_REPORT_NET_H

#include "json_write.h"
#include "predict.h"

/* Nothing where all was analytic. */
void report_net_text (GString *out, const Spec *s, const Prediction *p);
void report_net_json (JsonWriter *w, const Spec *s, const Prediction *p);

#endif
