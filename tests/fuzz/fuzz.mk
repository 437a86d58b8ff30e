# Included by the Makefile at the top.
# Fuzzing: libFuzzer comes with clang. New inputs are kept under the build folder between runs; an input
# that fails is left there as crash-…
FUZZ_CC      ?= clang
FUZZ_SECONDS ?= 60
FUZZ_DIR     := $(BUILDDIR)/fuzz
FUZZ_CFLAGS   = $(filter-out -Werror,$(BASE)) -Wno-sign-conversion -O1 -g1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined \
                $(INC) $(DEFS) $(PKGCF) $(CFLAGS)
# The readers and what they need, without commands and what runs or shows a prediction.
FUZZ_LIB     := $(ENGINE_SRC) $(MODEL_SRC) $(filter-out $(addprefix sim/app/,main.c api.c cmd_% law_% sweep_% fit_% validate% \
                cross% report% plot% campaign% gantt.c html_plot.c explain_% interval_fit.c import_run% quick.c),$(APP_SRC))
FUZZ_OBJ     := $(FUZZ_LIB:%.c=$(FUZZ_DIR)/obj/%.o)
fuzz: $(patsubst tests/fuzz/%.c,$(FUZZ_DIR)/%,$(FUZZ_SRC))
	@for f in $^; do n=$${f##*/}; mkdir -p $$f.corpus && \
	  ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=6 CLUSTERSIM_SCENARIOS=scenarios \
	  $$f -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -len_control=20 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
	      -dict=tests/fuzz/json.dict -artifact_prefix=$(FUZZ_DIR)/ $$f.corpus tests/fuzz/corpus/$$n || exit 1; done
$(FUZZ_DIR)/obj/%.o: %.c $(HEADERS)
	@mkdir -p $(@D)
	@echo "FUZZ CC $<"
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -c -o $@ $<
$(FUZZ_DIR)/libfuzz.a: $(FUZZ_OBJ)
	@rm -f $@
	$(Q)ar rcs $@ $^
$(FUZZ_DIR)/%: tests/fuzz/%.c $(FUZZ_DIR)/libfuzz.a
	@mkdir -p $(@D)
	@echo "FUZZ CC $<"
	$(Q)$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer -o $@ $< $(FUZZ_DIR)/libfuzz.a $(LIBS)
