# Rules of calibrate/: the CPU backend with OpenBLAS and Open MPI, the CUDA collectors where nvcc is
# there, and the closed loop. Included by the Makefile.
CAL      := $(BUILDDIR)/calibrate
CALCF    := -std=gnu17 -O3 -march=native -fopenmp-simd -fno-math-errno -fno-trapping-math \
            -ffinite-math-only $(filter-out -Wstrict-prototypes -Wpedantic,$(WARN))
NVCC     ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
# The parts asked for must be named: nvcc takes native without a GPU for an old part and says nothing.
CUDA_ARCH ?= -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 \
            -gencode arch=compute_90,code=compute_90
NVFLAGS  := -std=c++17 -O2 $(CUDA_ARCH) --compiler-options -Wall,-Wextra
OPENBLAS := $(shell pkg-config --libs openblas 2>/dev/null)
MPICF    := $(shell pkg-config --cflags ompi-c 2>/dev/null)
MPILIBS  := $(shell pkg-config --libs ompi-c 2>/dev/null)
CUDA_BIN := $(patsubst calibrate/%.cu,$(CAL)/%,$(sort $(wildcard calibrate/cal_*.cu)))
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
endif

$(CAL)/%.o: calibrate/%.c $(wildcard calibrate/*.h)
	@mkdir -p $(CAL)
	@echo "CC $<"
	$(Q)$(CC) $(CALCF) $(MPICF) -c -o $@ $<
$(CAL)/cal_cpu: $(CAL)/cal_cpu.o $(CAL)/cpu_ops.o
	$(Q)$(CC) -o $@ $^ $(OPENBLAS) -lm
$(CAL)/trainer: $(CAL)/trainer.o $(CAL)/cpu_ops.o
	$(Q)$(CC) -o $@ $^ $(MPILIBS) $(OPENBLAS) -lm
$(CAL)/cal_mpi: $(CAL)/cal_mpi.o
	$(Q)$(CC) -o $@ $^ $(MPILIBS) -lm
$(CAL)/loop_predict: calibrate/loop_predict.c $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB) $(B)/flags
	@mkdir -p $(CAL)
	@echo "CC $<"
	$(Q)$(CC) $(ALLCF) -o $@ $< $(APP_LIB) $(MODEL_LIB) $(ENGINE_LIB) $(LIBS)

# One program a file; cuBLASLt, cuDNN and NCCL where a file needs them, MPI with NCCL where it is.
CUDA_LIBS_cal_gemm      := -lcublasLt
CUDA_LIBS_cal_attention := -lcudnn
CUDA_LIBS_cal_overlap   := -lcublasLt
CUDA_LIBS_cal_layer     := -lcublasLt -lcudnn
CUDA_LIBS_cal_nccl      := -lnccl $(if $(MPILIBS),-DCAL_MPI $(MPICF) $(patsubst -Wl%,,$(patsubst -pthread,,$(MPILIBS))))
$(CAL)/%: calibrate/%.cu $(wildcard calibrate/*.cuh)
	@mkdir -p $(CAL)
	@echo "NVCC $<"
	$(Q)$(NVCC) $(NVFLAGS) -o $@ $< $(CUDA_LIBS_$*)

closed-loop: $(PROGRAM) cpu-backend
	@BIN=$(CAL) CLUSTERSIM=$(abspath $(PROGRAM)) calibrate/closed-loop.sh
