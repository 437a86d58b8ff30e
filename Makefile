# clustersim: one non-recursive Makefile. `make help` lists the targets.
# Variables: CC CFLAGS SAN=address,undefined DEV=1 COV=1 V=1 PREFIX DESTDIR BUILDDIR NVCC

CC       ?= gcc
PREFIX   ?= /usr/local
VERSION  := 0.1.0
PKGS     := glib-2.0 libcjson expat yaml-0.1
V        ?= 0
Q        := $(if $(filter 1,$(V)),,@)

BUILDDIR ?= build
VARIANT  := $(if $(SAN),-san)$(if $(COV),-cov)
# The plain build is build/ itself, so that build/clustersim is the program.
B        := $(BUILDDIR)$(if $(VARIANT),/v$(VARIANT))

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
            -Wstrict-prototypes -Wwrite-strings $(if $(DEV),-Werror)
# -ffp-contract=off and no -ffast-math: same input, same bytes out, on every x86-64.
BASE     := -std=c17 -D_GNU_SOURCE -O2 -g -ffp-contract=off $(WARN) \
            -DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_74 -DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_74
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) \
            $(if $(COV),--coverage)
# Quote-only search, so that our sched.h never stands in for the system header of that name.
INC      := -iquote sim/engine -iquote models -iquote sim/app -iquote calibrate
DEFS     := -DCLUSTERSIM_VERSION='"$(VERSION)"' -DCLUSTERSIM_DATADIR='"$(PREFIX)/share/clustersim"'
PKGCF    := $(shell pkg-config --cflags $(PKGS))
PKGLIBS  := $(shell pkg-config --libs $(PKGS))
ALLCF    := $(BASE) $(SANFLAGS) $(INC) $(DEFS) $(PKGCF) $(CFLAGS)
LIBS     := $(PKGLIBS) -lm

ENGINE_SRC := $(sort $(wildcard sim/engine/*.c))
MODEL_SRC  := $(sort $(wildcard models/*.c))
FIT_SRC    := $(sort $(wildcard calibrate/fit*.c))
APP_SRC    := $(sort $(wildcard sim/app/*.c))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c) $(wildcard tests/prop/prop_*.c))
BENCH_SRC  := $(sort $(wildcard tests/bench/bench_*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
CLI_TESTS  := $(sort $(wildcard tests/cli/*.sh))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
ENGINE_LIB := $(B)/libengine.a
MODEL_LIB  := $(B)/libmodels.a
APP_LIB    := $(B)/libapp.a
APP_OBJ    := $(call obj,$(filter-out sim/app/main.c,$(APP_SRC) $(FIT_SRC)))
UNIT_BIN   := $(patsubst tests/%.c,$(B)/tests/%,$(UNIT_SRC))
BENCH_BIN  := $(patsubst tests/%.c,$(B)/tests/%,$(BENCH_SRC))
PROGRAM    := $(B)/clustersim

.PHONY: all test test-full lint bench fuzz golden-update plots man install uninstall dist clean help \
        calibrate cuda FORCE
all: $(PROGRAM)

# A change of flags rebuilds everything: the stamp holds the flags and is touched when they differ.
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(ALLCF)' | cmp -s - $@ || echo '$(CC) $(ALLCF)' > $@

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "CC $<"
	$(Q)$(CC) $(ALLCF) -MMD -MP -c -o $@ $<

$(ENGINE_LIB): $(call obj,$(ENGINE_SRC))
$(MODEL_LIB): $(call obj,$(MODEL_SRC))
$(APP_LIB): $(APP_OBJ)
$(B)/%.a:
	@rm -f $@
	$(Q)ar rcs $@ $^

$(PROGRAM): $(B)/obj/sim/app/main.o $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)
	@echo "LD $@"
	$(Q)$(CC) $(ALLCF) -o $@ $^ $(LIBS)

# Tests link what they may know: names say it. test_engine_* see the engine alone; test_pure_* see
# models without the engine; all others see everything.
TESTLIBS = $(if $(findstring /test_engine_,$@),$(ENGINE_LIB),$(if $(findstring /test_pure_,$@),$(MODEL_LIB),\
             $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)))
$(B)/tests/%: $(B)/obj/tests/%.o $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLCF) -o $@ $< $(TESTLIBS) $(LIBS)

help:
	@echo 'make            build $(PROGRAM)'
	@echo 'make test       all tests (SAN=address,undefined for sanitizers)'
	@echo 'make bench      speed figures'
	@echo 'make lint       includes, banned calls, units, format, clang-tidy, cppcheck'
	@echo 'make fuzz       fuzz the JSON layer (FUZZ_SECONDS=60)'
	@echo 'make golden-update   rewrite the golden reports and show the difference'
	@echo 'make install    PREFIX=$(PREFIX) DESTDIR='

test: $(PROGRAM) $(UNIT_BIN)
	@CLUSTERSIM=$(PROGRAM) CLUSTERSIM_SCENARIOS=scenarios G_TEST_SRCDIR=. SANITIZED='$(SAN)' \
	  prove -e '' $(UNIT_BIN) $(CLI_TESTS)

bench: $(PROGRAM) $(BENCH_BIN)
	@for b in $(BENCH_BIN); do $$b || exit 1; done

clean:
	rm -rf $(BUILDDIR)

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
