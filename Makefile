# clustersim: one non-recursive Makefile. `make help` lists the targets.
# Variables: CC CFLAGS SAN=address,undefined COV=1 DEV=1 V=1 JOBS PREFIX DESTDIR BUILDDIR

ifeq ($(origin CC),default)
CC       := gcc
endif
PREFIX   ?= /usr/local
VERSION  := 0.1.0
PKGS     := glib-2.0 libcjson expat yaml-0.1 sqlite3
JOBS     ?= $(shell nproc 2>/dev/null || echo 1)
V        ?= 0
Q        := $(if $(filter 1,$(V)),,@)
comma    := ,

BUILDDIR ?= build
VARIANT  := $(if $(SAN),-san)$(if $(COV),-cov)
# The plain build is build/ itself, so that build/clustersim is the program.
B        := $(BUILDDIR)$(if $(VARIANT),/v$(VARIANT))

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
            -Wstrict-prototypes -Wwrite-strings $(if $(DEV),-Werror)
# -ffp-contract=off and no -ffast-math: same input, same bytes out, on every x86-64.
# Hidden and position-independent: the same objects make the program and the shared library.
BASE     := -std=c17 -D_GNU_SOURCE -O2 -g -ffp-contract=off -fPIC -fvisibility=hidden $(WARN) \
            -DGLIB_VERSION_MIN_REQUIRED=GLIB_VERSION_2_74 -DGLIB_VERSION_MAX_ALLOWED=GLIB_VERSION_2_74
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=undefined) \
            $(if $(COV),--coverage)
# Quote-only search, so that our sched.h never stands in for the system header of that name.
INC      := -iquote sim/engine -iquote models -iquote sim/app -iquote calibrate -I sim/include
# An installed program or shared library finds its data beside itself, wherever PREFIX was; this is where a program
# looks that was linked with the static library.
DATADIR  ?= /usr/local/share/clustersim
DEFS     := -DCLUSTERSIM_VERSION='"$(VERSION)"' -DCLUSTERSIM_DATADIR='"$(DATADIR)"'
PKGCF    := $(shell pkg-config --cflags $(PKGS))
PKGLIBS  := $(shell pkg-config --libs $(PKGS))
ALLCF    := $(BASE) $(SANFLAGS) $(INC) $(DEFS) $(PKGCF) $(CFLAGS)
LIBS     := $(PKGLIBS) -lm

ENGINE_SRC := $(sort $(wildcard sim/engine/*.c))
MODEL_SRC  := $(sort $(wildcard models/*.c))
FIT_SRC    := $(sort $(wildcard calibrate/fit*.c))
APP_SRC    := $(sort $(wildcard sim/app/*.c))
UNIT_SRC   := $(sort $(wildcard tests/unit/test_*.c) $(wildcard tests/prop/prop_*.c))
ORACLE_SRC := $(sort $(wildcard tests/oracle/*.c))
BENCH_SRC  := $(sort $(wildcard tests/bench/bench_*.c))
FUZZ_SRC   := $(sort $(wildcard tests/fuzz/fuzz_*.c))
CLI_TESTS  := $(sort $(wildcard tests/cli/*.sh))
OURS       := $(ENGINE_SRC) $(MODEL_SRC) $(FIT_SRC) $(APP_SRC) $(UNIT_SRC) $(ORACLE_SRC) $(BENCH_SRC)
HEADERS    := $(sort $(shell find sim models calibrate tests -name '*.h' 2>/dev/null))
FORMATTED  := $(sort $(shell find sim models calibrate tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null))
SCRIPTS    := $(sort $(shell find tests -name '*.sh' 2>/dev/null)) $(wildcard .ci/run sim/examples/*.sbatch sim/packaging/*.sh sim/packaging/*.bash)
DATA_FILES := $(sort $(shell find scenarios plots sim/examples -type f 2>/dev/null))

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
ENGINE_LIB := $(B)/libengine.a
MODEL_LIB  := $(B)/libmodels.a
APP_LIB    := $(B)/libapp.a
ORACLE_LIB := $(B)/liboracle.a
APP_OBJ    := $(call obj,$(filter-out sim/app/main.c,$(APP_SRC) $(FIT_SRC)))
UNIT_BIN   := $(patsubst tests/%.c,$(B)/tests/%,$(UNIT_SRC))
BENCH_BIN  := $(patsubst tests/%.c,$(B)/tests/%,$(BENCH_SRC))
PROGRAM    := $(B)/clustersim
MAN        := $(B)/clustersim.1
SO_VERSION := 0
SHARED     := $(B)/libclustersim.so.$(SO_VERSION)
STATIC     := $(B)/libclustersim.a

.PHONY: profiles demo all lib deb flags-current test test-full lint format lint-all lint-text lint-format lint-headers lint-cppcheck bench golden-update \
        validate fuzz plots man install uninstall dist clean help FORCE
.SECONDARY:
.DELETE_ON_ERROR:
all: $(PROGRAM) lib
lib: $(SHARED) $(STATIC)

# ---- build ----
# A stamp holds what make does not see by itself and is touched when that changes: the flags (everything is
# compiled again) and the list of sources (libraries lose the member whose source is gone).
$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(subst ','\'',$(CC) $(ALLCF))' | cmp -s - $@ || echo '$(subst ','\'',$(CC) $(ALLCF))' > $@
flags-current:
	@echo '$(subst ','\'',$(CC) $(ALLCF))' | cmp -s - $(B)/flags
$(B)/sources: FORCE
	@mkdir -p $(B)
	@echo '$(OURS)' | cmp -s - $@ || echo '$(OURS)' > $@

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	@echo "CC $<"
	$(Q)$(CC) $(ALLCF) -MMD -MP -c -o $@ $<

$(ENGINE_LIB): $(call obj,$(ENGINE_SRC)) $(B)/sources
$(MODEL_LIB): $(call obj,$(MODEL_SRC)) $(B)/sources
$(APP_LIB): $(APP_OBJ) $(B)/sources
$(ORACLE_LIB): $(call obj,$(ORACLE_SRC)) $(B)/sources
$(B)/%.a:
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(PROGRAM): $(B)/obj/sim/app/main.o $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)
	@echo "LD $@"
	$(Q)$(CC) $(ALLCF) -o $@ $^ $(LIBS)

# The shipped device profiles again, out of scenarios/hw/start and the tables in CLUSTERSIM_SHARED; shows what differs.
profiles: $(PROGRAM)
	scenarios/hw/fit.sh "$(CLUSTERSIM_SHARED)/data" $(B)/profiles
	@for f in scenarios/hw/*.json; do diff -u $$f $(B)/profiles/$${f##*/} || exit 1; done; echo "all profiles are as shipped"

# The library: what sim/include/clustersim.h tells is seen from outside, all else is hidden.
LIB_OBJ := $(APP_OBJ) $(call obj,$(MODEL_SRC) $(ENGINE_SRC))
$(SHARED): $(LIB_OBJ) $(B)/sources
	@echo "LD $@"
	$(Q)$(CC) $(ALLCF) -shared -Wl,-soname,$(notdir $@) -Wl,--no-undefined -o $@ $(filter %.o,$^) $(LIBS)
	@ln -sf $(notdir $@) $(B)/libclustersim.so
$(STATIC): $(LIB_OBJ) $(B)/sources
	@echo "AR $@"
	@rm -f $@ $@.o
	$(Q)ld -r -o $@.o $(filter %.o,$^) && objcopy --localize-hidden $@.o && ar rcs $@ $@.o && rm -f $@.o

# Tests link what they may know: names say it. test_engine_* see the engine alone; test_pure_* see
# models without the engine; all others see everything,
# tests/oracle (slow and plain solvers to be held against) among it.
TESTLIBS = $(if $(findstring /test_engine_,$@),$(ENGINE_LIB),$(if $(findstring /test_pure_,$@),$(MODEL_LIB),\
             $(ORACLE_LIB) $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)))
$(B)/tests/%: $(B)/obj/tests/%.o $(ORACLE_LIB) $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALLCF) -o $@ $< $(TESTLIBS) $(LIBS)

help:
	@echo 'make                 build $(PROGRAM)'
	@echo 'make demo            a published step predicted, and a picture of how it scales'
	@echo 'make test            all tests (SAN=address,undefined: with sanitizers; COV=1: counting coverage)'
	@echo 'make test-full       the same with longer random tests, then with sanitizers'
	@echo 'make lint            includes, banned calls, units, lengths, format, clang-tidy, cppcheck; DEEP=1: analyzer'
	@echo 'make format          clang-format, in place'
	@echo 'make validate SHARED=FOLDER   the tables of a folder against the targets'
	@echo 'make bench           speed figures'
	@echo 'make fuzz            fuzz the readers (FUZZ_SECONDS=60)'
	@echo 'make golden-update   rewrite the golden reports and show the difference'
	@echo 'make plots           sample pictures in $(B)/plots'
	@echo 'make lib             the C library, shared and static (sim/include/clustersim.h)'
	@echo 'make man             manual page'
	@echo 'make deb             Debian package in $(BUILDDIR) (needs dpkg-deb)'
	@echo 'make install         PREFIX=$(PREFIX) DESTDIR=$(DESTDIR); make uninstall takes it away'
	@echo 'make dist            source archive of HEAD in $(BUILDDIR)'
	@echo 'make compile_commands.json   for editors'
	@echo 'DEV=1: warnings are errors; V=1: show commands; JOBS=$(JOBS): tests and checks at a time'

# ---- the main job: a published step predicted, and how it scales ----
DEMO     := $(B)/demo
DEMO_ENV := CLUSTERSIM_SCENARIOS=scenarios CLUSTERSIM_PLOTS=plots
NODES    := 16,32,64,128,256,512
demo: $(PROGRAM)
	@mkdir -p $(DEMO)
	@$(DEMO_ENV) $(PROGRAM) predict gpt3-175b-h100
	@$(DEMO_ENV) $(PROGRAM) sweep gpt3-175b-h100 --quiet --series 'weak: 2 sequences a GPU' -o $(DEMO)/weak.csv \
	  --vary 'cluster.nodes=$(NODES);train.global_batch_sequences=256,512,1024,2048,4096,8192'
	@$(DEMO_ENV) $(PROGRAM) sweep gpt3-175b-h100 --quiet --series 'strong: 2048 sequences' -o $(DEMO)/strong.csv \
	  --vary 'cluster.nodes=$(NODES);train.global_batch_sequences=2048,2048,2048,2048,2048,2048'
	@{ cat $(DEMO)/weak.csv; tail -n +2 $(DEMO)/strong.csv; } > $(DEMO)/scaling.csv
	@for f in svg png; do $(DEMO_ENV) $(PROGRAM) plot scaling $(DEMO)/scaling.csv -o $(DEMO)/scaling.$$f \
	  --title 'GPT 175B on H100' --caption 'tp 4, pp 8 x 12 chunks, bf16, distributed optimizer; 8 NDR ports a node' \
	  || exit 1; done
	@echo; echo 'picture: $(DEMO)/scaling.svg and .png, table: $(DEMO)/scaling.csv'

# ---- tests ----
TEST_ENV = CLUSTERSIM=$(PROGRAM) CLUSTERSIM_SCENARIOS=scenarios CLUSTERSIM_PLOTS=plots G_TEST_SRCDIR=. \
           SANITIZED='$(SAN)'
test: $(PROGRAM) $(UNIT_BIN) lib
	@$(TEST_ENV) prove -j$(JOBS) -e '' $(UNIT_BIN) $(CLI_TESTS)

test-full: $(PROGRAM) $(UNIT_BIN)
	@CLUSTERSIM_TEST_FULL=1 $(TEST_ENV) prove -j$(JOBS) -e '' $(UNIT_BIN) $(CLI_TESTS)
	@$(MAKE) --no-print-directory test SAN=address,undefined

validate: $(PROGRAM)
	@test -n '$(SHARED)' || { echo 'make validate SHARED=FOLDER (of the measurements: runs.csv, memory.csv, gemm.csv …)' >&2; exit 2; }
	@$(TEST_ENV) $(PROGRAM) validate --all '$(SHARED)'

bench: $(PROGRAM) $(BENCH_BIN)
	@for b in $(BENCH_BIN); do $(TEST_ENV) $$b || exit 1; done

golden-update: $(PROGRAM)
	@test -x tests/golden/update.sh || { echo 'no tests/golden/update.sh'; exit 1; }
	@$(TEST_ENV) tests/golden/update.sh && git --no-pager diff --stat -- tests/golden

plots:
	@mkdir -p $(B)/plots
	@for f in tests/data/plot/*.csv; do k=$$(basename $$f .csv); for e in svg png; do \
	  gnuplot -d -e "data='$$f'; out='$(B)/plots/$$k.$$e'; title='Sample: $$k'" plots/$$k.gp || exit 1; done; done
	@ls $(B)/plots

# ---- lint: a source that passed is not looked at again until it, a header of it or the rules change ----
lint:
	@$(MAKE) --no-print-directory -j$(JOBS) lint-all
lint-all: lint-text lint-format lint-headers lint-cppcheck $(patsubst %.c,$(B)/lint/%.ok,$(OURS)) \
          $(if $(DEEP),$(patsubst %.c,$(B)/lint/%.deep,$(filter-out tests/%,$(OURS))))
	@echo 'lint: clean'

lint-text: $(PROGRAM)
	@for l in includes style units length; do perl tests/lint/$$l.pl || exit 1; done
	@tests/lint/selftest.sh
	@CLUSTERSIM=$(PROGRAM) tests/lint/scenarios.sh
	@shellcheck -x -S warning $(SCRIPTS)
format:
	@clang-format -i $(FORMATTED)
lint-format:
	@for f in $(FORMATTED); do clang-format --dry-run -Werror $$f 2>/dev/null || \
	  { echo "$$f: not as clang-format has it (make format) [format]"; bad=1; }; done; test -z "$$bad"
lint-headers:
	@printf '%s\n' $(HEADERS) | xargs -P 2 -n 1 $(CC) $(ALLCF) -Werror -fsyntax-only -x c
lint-cppcheck:
	@mkdir -p $(B)/lint/cppcheck
	@cppcheck -q -j2 --cppcheck-build-dir=$(B)/lint/cppcheck --enable=warning,performance,portability \
	  --std=c11 --library=gtk --inline-suppr --suppressions-list=tests/lint/cppcheck.supp --error-exitcode=1 \
	  --template='{file}:{line}: {message} [{id}]' -D_GNU_SOURCE '-DG_DEFINE_QUARK(QN,q_n)=' '-DG_GNUC_PRINTF(f,a)=' \
	  $(patsubst %,-I %,sim/engine models sim/app calibrate) $(wildcard sim models calibrate tests)
$(B)/lint/%.ok: %.c $(B)/obj/%.o .clang-tidy $(wildcard tests/.clang-tidy) | compile_commands.json
	@mkdir -p $(@D)
	@clang-tidy -p . --quiet $< 2>/dev/null
	@$(CC) $(ALLCF) -Werror -fsyntax-only $<
	@touch $@
# DEEP=1: gcc's analyzer too. Off in it: what is put into an array in a loop is beyond it (uninitialised values and
# leaks, which -Wall and the sanitizers look for), and that libc has no more memory is no case of ours.
ANALYZER := -O0 -g0 -Werror -Wno-conversion -Wno-sign-conversion -fanalyzer -Wno-analyzer-use-of-uninitialized-value -Wno-analyzer-malloc-leak \
            -Wno-analyzer-file-leak -Wno-analyzer-possible-null-argument -Wno-analyzer-possible-null-dereference
$(B)/lint/%.deep: %.c $(B)/obj/%.o
	@mkdir -p $(@D)
	@$(CC) $(ALLCF) $(ANALYZER) -S -o /dev/null $<
	@touch $@

compile_commands.json: FORCE
	$(file >$@,[)
	$(foreach f,$(OURS),$(file >>$@,{"directory": "$(CURDIR)"$(comma) "file": "$(f)"$(comma)  \
	  "command": "$(subst ",\",$(CC) $(ALLCF)) -c $(f)"}$(if $(filter $(f),$(lastword $(OURS))),,$(comma))))
	$(file >>$@,])
	@:

# ---- install ----
man: $(MAN)
$(MAN): $(PROGRAM) sim/packaging/man.sh
	@$(DEMO_ENV) sim/packaging/man.sh $(PROGRAM) > $@

# Of the folder that install fills; uninstall takes away the same.
INSTALLED := bin/clustersim include/clustersim.h lib/libclustersim.so lib/libclustersim.so.$(SO_VERSION) \
             lib/libclustersim.a lib/pkgconfig/clustersim.pc share/man/man1/clustersim.1 \
             share/bash-completion/completions/clustersim share/zsh/site-functions/_clustersim
TO := $(DESTDIR)$(PREFIX)
install: $(PROGRAM) lib man
	install -D -m 755 $(PROGRAM) $(TO)/bin/clustersim
	install -D -m 644 sim/include/clustersim.h $(TO)/include/clustersim.h
	install -D -m 755 $(SHARED) $(TO)/lib/libclustersim.so.$(SO_VERSION)
	ln -sf libclustersim.so.$(SO_VERSION) $(TO)/lib/libclustersim.so
	install -D -m 644 $(STATIC) $(TO)/lib/libclustersim.a
	install -d $(TO)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@PKGS@|$(PKGS)|' sim/packaging/clustersim.pc.in \
	  > $(TO)/lib/pkgconfig/clustersim.pc
	install -D -m 644 $(MAN) $(TO)/share/man/man1/clustersim.1
	install -D -m 644 sim/packaging/clustersim.bash $(TO)/share/bash-completion/completions/clustersim
	install -D -m 644 sim/packaging/_clustersim $(TO)/share/zsh/site-functions/_clustersim
	@for f in $(DATA_FILES); do install -D -m 644 $$f $(TO)/share/clustersim/$$f || exit 1; done

uninstall:
	rm -f $(addprefix $(TO)/,$(INSTALLED))
	rm -rf $(TO)/share/clustersim

DEB_TREE := $(BUILDDIR)/deb
deb: $(PROGRAM) lib man
	@rm -rf $(DEB_TREE)
	@$(MAKE) --no-print-directory install PREFIX=/usr DESTDIR=$(abspath $(DEB_TREE)) >/dev/null
	@sim/packaging/deb.sh $(DEB_TREE) $(VERSION) \
	  $(BUILDDIR)/clustersim_$(VERSION)_$$(dpkg --print-architecture).deb

dist:
	@mkdir -p $(BUILDDIR)
	git archive --format=tar.gz --prefix=clustersim-$(VERSION)/ -o $(BUILDDIR)/clustersim-$(VERSION).tar.gz HEAD

clean:
	rm -rf $(BUILDDIR) compile_commands.json

# Rules that belong to one folder stand there: tests/fuzz/fuzz.mk.
-include $(sort $(wildcard tests/*/*.mk calibrate/*.mk))
-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
