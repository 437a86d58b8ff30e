# Rules of calibrate/: the CPU backend with OpenBLAS and Open MPI, the CUDA collectors where nvcc is
# there, and the closed loop. Included by the Makefile.
CAL      := $(BUILDDIR)/calibrate
# What is measured may reorder its sums, so that loops use the vector units; results of the simulator never do.
CALCF    := -std=gnu17 -O3 -march=native -fno-math-errno -fno-trapping-math -ffinite-math-only \
            -fno-signed-zeros -fassociative-math $(filter-out -Wstrict-prototypes -Wpedantic,$(WARN)) \
            $(filter-out -std=%,$(shell pkg-config --cflags glib-2.0))
CALLIBS  := $(shell pkg-config --libs glib-2.0) -lm
NVCC     ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
# The parts asked for must be named: nvcc takes native without a GPU for an old part and says nothing.
CUDA_ARCH ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
            -gencode arch=compute_90,code=compute_90
NVFLAGS  := -std=c++17 -O2 $(CUDA_ARCH) --compiler-options -Wall,-Wextra
OPENBLAS := $(shell pkg-config --libs openblas 2>/dev/null)
MPICF    := $(shell pkg-config --cflags ompi-c 2>/dev/null)
MPILIBS  := $(shell pkg-config --libs ompi-c 2>/dev/null)
# The libraries of each collector beside the CUDA runtime; those that are not there leave theirs out. They
# are looked for by their headers only when CUDA is built, as nvcc takes a moment to answer.
CUDA_LIBS_cal_gemm         := -lcublasLt
CUDA_LIBS_cal_attention    := -lcudnn
CUDA_LIBS_cal_overlap      := -lcublasLt
CUDA_LIBS_cal_overlap_coll := -lcublasLt -lnccl
CUDA_LIBS_cal_layer        := -lcublasLt
CUDA_LIBS_cal_nccl         := -lnccl
has_header = $(shell printf '\043include <$(1).h>\n' | $(NVCC) -x cu -E - >/dev/null 2>&1 && echo -l$(1))
ifneq ($(NVCC),)
ifneq ($(filter calibrate cuda,$(MAKECMDGOALS)),)
CUDA_HAS := $(foreach l,cublasLt cudnn nccl,$(call has_header,$(l)))
endif
endif
CUDA_ALL := $(patsubst calibrate/%.cu,%,$(sort $(wildcard calibrate/cal_*.cu)))
CUDA_OUT := $(strip $(foreach p,$(CUDA_ALL),$(if $(filter-out $(CUDA_HAS),$(CUDA_LIBS_$(p))),$(p))))
CUDA_BIN := $(addprefix $(CAL)/,$(filter-out $(CUDA_OUT),$(CUDA_ALL)) \
            $(if $(MPILIBS),$(if $(filter -lnccl,$(CUDA_HAS)),cal_nccl_mpi)))
CPU_BIN  := $(if $(OPENBLAS),$(CAL)/cal_cpu) $(if $(MPILIBS),$(CAL)/cal_mpi) \
            $(if $(MPILIBS),$(if $(OPENBLAS),$(CAL)/trainer))

.PHONY: calibrate cuda cpu-backend closed-loop
calibrate: cpu-backend cuda
cpu-backend: $(CPU_BIN) $(CAL)/loop_predict
	@$(if $(OPENBLAS),:,echo 'calibrate: no OpenBLAS (libopenblas-dev): cal_cpu and trainer are left out')
	@$(if $(MPILIBS),:,echo 'calibrate: no Open MPI (libopenmpi-dev): cal_mpi and trainer are left out')
ifeq ($(NVCC),)
cuda:
	@echo 'calibrate: no nvcc: the CUDA collectors are left out, the CPU backend is built'
else
cuda: $(CUDA_BIN)
	@$(if $(CUDA_OUT),echo 'calibrate: no $(filter-out $(CUDA_HAS:-l%=%),cublasLt cudnn nccl): left out: $(CUDA_OUT)',:)
endif

$(CAL)/%.o: calibrate/%.c $(wildcard calibrate/*.h)
	@mkdir -p $(CAL)
	@echo "CC $<"
	$(Q)$(CC) $(CALCF) $(MPICF) -c -o $@ $<
$(CAL)/cal_cpu: $(CAL)/cal_cpu.o $(CAL)/cpu_ops.o
	$(Q)$(CC) -o $@ $^ $(OPENBLAS) $(CALLIBS)
$(CAL)/trainer: $(CAL)/trainer.o $(CAL)/cpu_ops.o
	$(Q)$(CC) -o $@ $^ $(MPILIBS) $(OPENBLAS) $(CALLIBS)
$(CAL)/cal_mpi: $(CAL)/cal_mpi.o
	$(Q)$(CC) -o $@ $^ $(MPILIBS) $(CALLIBS)
$(CAL)/loop_predict: tests/closed_loop/loop_predict.c $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB) $(B)/flags
	@mkdir -p $(CAL)
	@echo "CC $<"
	$(Q)$(CC) $(ALLCF) -o $@ $< $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB) $(LIBS)

# One program a file; NCCL once for one process and once for MPI.
$(CAL)/%: calibrate/%.cu $(wildcard calibrate/*.cuh)
	@mkdir -p $(CAL)
	@echo "NVCC $<"
	$(Q)$(NVCC) $(NVFLAGS) -o $@ $< $(CUDA_LIBS_$*)
$(CAL)/cal_nccl_mpi: calibrate/cal_nccl.cu $(wildcard calibrate/*.cuh)
	@mkdir -p $(CAL)
	@echo "NVCC $< (MPI)"
	$(Q)$(NVCC) $(NVFLAGS) -DCAL_MPI -DOMPI_SKIP_MPICXX $(filter -I%,$(MPICF)) -o $@ $< -lnccl \
	  $(filter -L% -l%,$(MPILIBS))

closed-loop: $(PROGRAM) cpu-backend
	@BIN=$(CAL) CLUSTERSIM=$(abspath $(PROGRAM)) calibrate/closed-loop.sh
