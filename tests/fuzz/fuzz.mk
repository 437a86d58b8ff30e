# Included by the Makefile at the top.
# Fuzzing: libFuzzer comes with clang. New inputs are kept under the build folder between runs; an input
# that fails is left there as crash-…
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_DIR     := $(BUILDDIR)/fuzz
FUZZ_APP     := $(sort $(wildcard sim/app/json_*.c)) sim/app/text.c
fuzz: $(patsubst tests/fuzz/%.c,$(FUZZ_DIR)/%,$(FUZZ_SRC))
	@for f in $^; do mkdir -p $$f.corpus && \
	  ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=6 \
	  $$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -len_control=20 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	      -dict=tests/fuzz/json.dict -artifact_prefix=$(FUZZ_DIR)/ $$f.corpus tests/fuzz/corpus || exit 1; done
$(FUZZ_DIR)/%: tests/fuzz/%.c $(FUZZ_APP) $(wildcard sim/app/*.h)
	@mkdir -p $(@D)
	@echo "FUZZ CC $<"
	$(Q)$(FUZZ_CC) $(BASE) -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
	  $(INC) $(DEFS) $(PKGCF) $(CFLAGS) -o $@ $< $(FUZZ_APP) $(LIBS)
