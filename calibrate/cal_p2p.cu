/* cal_p2p: copies between GPUs of a node, one way, for every size from 4 KiB to 1 GiB: the samples
 * of the fabric's p2p path. With one GPU it says so and prints an empty set. usage: cal_p2p
 * [--minutes M] [--gpu I] */
#include "cal_common.cuh"

int
main (int argc, char **argv)
{
  Cal c (argc, argv, 0.2);
  int count = 0, can = 0;
  CHECK (cudaGetDeviceCount (&count));
  if (count < 2) {
    fprintf (stderr, "cal_p2p: one GPU: nothing to copy between\n");
    c.end ();
    return 0;
  }
  int peer = (c.index + 1) % count;
  size_t most = std::min ((size_t)1 << 30, c.prop.totalGlobalMem / 8);
  char *from = (char *)device_random<float> (most / 4, 1), *to = nullptr;
  CHECK (cudaDeviceCanAccessPeer (&can, c.index, peer));
  if (can)
    CHECK (cudaDeviceEnablePeerAccess (peer, 0));
  CHECK (cudaSetDevice (peer));
  CHECK (cudaMalloc (&to, most));
  CHECK (cudaSetDevice (c.index));
  if (!can)
    fprintf (stderr, "cal_p2p: no peer access: copies go through the host\n");
  for (size_t n = 4096; n <= most; n *= 4) {
    if (c.spent ()) {
      c.left_out++;
      continue;
    }
    Timing t = c.burst (
        [&] (cudaStream_t s) { CHECK (cudaMemcpyPeerAsync (to, peer, from, c.index, n, s)); });
    /* a message of the fabric: the samples of its point-to-point path */
    c.head ("coll");
    printf (", \"op\": \"sendrecv\", \"ranks\": 2, \"nodes\": 1, \"bytes\": %zu, "
            "\"library\": \"cudaMemcpyPeer\"",
            n);
    c.tail (t);
  }
  std::vector<char> a (4096), b (4096);
  CHECK (cudaMemcpy (a.data (), from, 4096, cudaMemcpyDeviceToHost));
  CHECK (cudaMemcpy (b.data (), to, 4096, cudaMemcpyDefault));
  if (memcmp (a.data (), b.data (), 4096) != 0) {
    fprintf (stderr, "cal_p2p: what arrived is not what was sent\n");
    return 1;
  }
  c.end ();
  return 0;
}
