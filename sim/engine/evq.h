/* evq: the event queue of the engine.
 *
 * A 4-ary heap of 128-bit keys  time:64 | prio:3 | seq:39 | slot:22  compared as one integer, so
 * that the order is total: FIFO within equal (time, prio), or random there if a stream for ties is
 * given. The payload lies in a pool of 32-byte slots that sifting never touches. Events of priority
 * NORMAL at the time of the last pop go to a ring instead of the heap: they come in key order
 * already, and a pop takes the smaller of the two heads, so the ring changes the cost and not the
 * order.
 *
 * Cancelling marks the slot; its key is dropped when it comes up, and when more than half of the
 * keys are dead the live ones are gathered and the heap rebuilt. A slot is reused only after its
 * key is gone; its generation moves on each time an event ends, so an old id never hits a new
 * event.
 *
 * Limits: 2^22 keys at once, 2^39 pushes in all (with FIFO ties); pushing beyond is reported, not
 * asserted, since a large enough scenario can do it. Memory: 48 bytes for each event, grown by
 * doubling, given back by evq_free.
 */
#ifndef CLUSTERSIM_EVQ_H
#define CLUSTERSIM_EVQ_H

#include <glib.h>

#include "engine.h"

typedef struct EvQueue EvQueue;

typedef struct {
  SimTime time;
  gpointer self;
  guint64 arg;
  guint16 kind;
} EvEvent;

typedef enum { EVQ_OK, EVQ_FULL, EVQ_NO_SEQ } EvqPush;
typedef enum { EVQ_EVENT, EVQ_EMPTY, EVQ_LATER } EvqPop;

/* max_keys: 0 or at most SIM_MAX_OUTSTANDING. ties: stream to shuffle ties with, copied; NULL:
 * FIFO. first_seq: 0, but for tests of the end of the sequence. */
EvQueue *evq_new (guint32 max_keys, const SimRng *ties, guint64 first_seq);
void evq_free (EvQueue *q);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (EvQueue, evq_free)

/* t must not be before the last event popped. *id is set on EVQ_OK, and {0, 0} else. */
EvqPush evq_push (EvQueue *q, SimTime t, SimPrio prio, guint16 kind, gpointer self, guint64 arg,
                  SimEventId *id);

/* Takes the first event, unless it is after `last`: then EVQ_LATER, *ev has it and it stays. */
EvqPop evq_pop (EvQueue *q, SimTime last, EvEvent *ev);

gboolean evq_cancel (EvQueue *q, SimEventId id);

guint32 evq_len (const EvQueue *q);    /* events outstanding */
guint32 evq_n_keys (const EvQueue *q); /* the same and the dead keys not yet dropped */

#endif
