#!/usr/bin/env python3
"""Step time against tensor parallelism, from Python, without a binding: predict.py [SCENARIO].

The library is found as the linker finds it (after make install: ldconfig), or by CLUSTERSIM_LIBRARY.
"""
import ctypes
import json
import os
import sys


class Clustersim:
    """The C library, see clustersim.h."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.environ.get("CLUSTERSIM_LIBRARY", "libclustersim.so.0"))
        for name in ("load", "predict"):
            getattr(self.lib, "clustersim_" + name).restype = ctypes.c_void_p
        self.lib.clustersim_json.restype = ctypes.c_char_p
        for name in ("predict", "set", "json", "result_free", "scenario_free", "free"):
            getattr(self.lib, "clustersim_" + name).argtypes = None

    def _check(self, result, error):
        if result:
            return result
        message = ctypes.cast(error, ctypes.c_char_p).value.decode()
        self.lib.clustersim_free(error)
        raise ValueError(message)

    def predict(self, scenario, **keys):
        """The result of `predict --format json` as a dict. Keys: parallel__tp=8 sets parallel.tp."""
        error = ctypes.c_void_p()
        s = ctypes.c_void_p(self._check(self.lib.clustersim_load(scenario.encode(), ctypes.byref(error)), error))
        try:
            for key, value in keys.items():
                done = self.lib.clustersim_set(s, key.replace("__", ".").encode(), str(value).encode(),
                                               ctypes.byref(error))
                self._check(done == 0, error)
            r = ctypes.c_void_p(self._check(self.lib.clustersim_predict(s, ctypes.byref(error)), error))
            result = json.loads(self.lib.clustersim_json(r))
            self.lib.clustersim_result_free(r)
            return result
        finally:
            self.lib.clustersim_scenario_free(s)


if __name__ == "__main__":
    sim = Clustersim()
    print("tp  step_time_s      mfu  peak_GiB")
    for tp in (2, 4, 8):
        try:
            p = sim.predict(sys.argv[1] if len(sys.argv) > 1 else "gpt3-175b-h100", parallel__tp=tp)
            print("%2d  %11.4f  %6.1f%%  %8.2f"
                  % (tp, p["step_time_s"], 100 * p["mfu"], p["memory"]["peak_bytes"] / 2**30))
        except ValueError as e:
            print("%2d  %s" % (tp, e))
