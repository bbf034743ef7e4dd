// SPDX-License-Identifier: Apache-2.0

package tools

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/inventory"
)

// program is a program that is compiled from the sources that a block of a driver names.
type program struct {
	block  string // in the language
	of     string // kind of the driver stack that it is compiled for; "": none
	pkg    string // package that comes out
	about  string
	cmake  bool
	mpi    bool
	runs   string // a program of it that must be there on nodes
	files  []compile.Files
	env    func(stack.Toolkit, system) []string
	recipe func(k stack.Toolkit, s system) [][]string
	file   string // name of the one file of sources that ironrail has of it itself, and
	own    []byte // its text; nil: the driver names an archive
}

// checksumSource is the program whose results are compared between GPUs.
//
//go:embed checksum/gpu_checksum.cu
var checksumSource []byte

// mostJobs is how many compilers run at once at most: those of GPUs take gigabytes each.
const mostJobs = 8

// system is what programs are compiled on.
type system struct {
	family distribution.Family
	arch   inventory.Arch
	jobs   int // compilers at once
}

// mpiSuffix ends the names of programs that were compiled with MPI: without it, the same
// program runs by itself on each node, and shows the bandwidth of NVLink for that of the
// network.
const mpiSuffix = "_mpi"

// plainMPI leaves Open MPI 4's classes for C++ out of mpi.h: they are in a library of
// their own, which no Makefile names, so that nothing would link.
const plainMPI = "-DOMPI_SKIP_MPICXX=1"

// mpiFlags are those of the compiler for programs with MPI.
func (s system) mpiFlags() string {
	if headers := s.family.MPIHeaders(s.arch); headers != "" {
		return plainMPI + " -I" + headers
	}
	return plainMPI
}

// mpiLibraries is the folder that such programs have to find Open MPI's libraries in; "": the linker
// finds them.
func (s system) mpiLibraries() string {
	_, libraries := s.family.MPIRun()
	return libraries
}

// collectives are what the tests of NCCL and RCCL make: build/all_reduce_perf_mpi, or,
// where their Makefile has no NAME_SUFFIX, build/all_reduce_perf.
var collectives = []compile.Files{{Glob: "build/*_perf*", Trim: mpiSuffix, Suffix: mpiSuffix}}

// programs are all that can be compiled, in the order of their blocks.
func programs() []program {
	return []program{
		// README of github.com/NVIDIA/nccl-tests, "Build".
		{block: "nccl_tests", of: "cuda", pkg: "ironrail-nccl-tests", about: "tests of NCCL, with MPI", mpi: true, runs: "all_reduce_perf" + mpiSuffix, files: collectives,
			env: func(_ stack.Toolkit, s system) []string {
				flags := s.mpiFlags()
				if at := s.mpiLibraries(); at != "" {
					flags += " -Xlinker -rpath=" + at
				}
				return []string{"NVCC_APPEND_FLAGS=" + flags}
			},
			recipe: func(k stack.Toolkit, s system) [][]string {
				return [][]string{{"/usr/bin/make", "-j" + strconv.Itoa(s.jobs), "MPI=1", "NAME_SUFFIX=" + mpiSuffix, "MPI_HOME=" + s.family.MPIHome(s.arch), "CUDA_HOME=" + k.Home, "NCCL_HOME=" + k.Library,
					"NVCC_GENCODE=" + codeFlags(k.Targets)}}
			}},
		// README of github.com/ROCm/rccl-tests, "Build"; hipcc takes the GPUs from the
		// environment where the Makefile does not name them.
		{block: "rccl_tests", of: "rocm", pkg: "ironrail-rccl-tests", about: "tests of RCCL, with MPI", mpi: true, runs: "all_reduce_perf" + mpiSuffix, files: collectives,
			env: func(k stack.Toolkit, s system) []string {
				env := []string{"PATH=" + k.Home + "/bin:/usr/bin:/bin", "HCC_AMDGPU_TARGET=" + strings.Join(k.Targets, ","), "HIPCC_COMPILE_FLAGS_APPEND=" + s.mpiFlags()}
				if at := s.mpiLibraries(); at != "" {
					env = append(env, "HIPCC_LINK_FLAGS_APPEND=-Wl,-rpath,"+at)
				}
				return env
			},
			recipe: func(k stack.Toolkit, s system) [][]string {
				return [][]string{{"/usr/bin/make", "-j" + strconv.Itoa(s.jobs), "MPI=1", "NAME_SUFFIX=" + mpiSuffix, "MPI_HOME=" + s.family.MPIHome(s.arch), "HIP_HOME=" + k.Home, "ROCM_PATH=" + k.Home, "NCCL_HOME=" + k.Library,
					"GPU_TARGETS=" + strings.Join(k.Targets, ",")}}
			}},
		// README of github.com/NVIDIA/nvbandwidth, "Build". The libraries of the driver are
		// on nodes: here are the toolkit's stubs of them.
		{block: "nvbandwidth", of: "cuda", pkg: "ironrail-nvbandwidth", about: "nvbandwidth", cmake: true, runs: "nvbandwidth", files: []compile.Files{{Glob: "nvbandwidth"}},
			recipe: func(k stack.Toolkit, s system) [][]string {
				return [][]string{
					{"/usr/bin/cmake", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CUDA_COMPILER=" + k.Home + "/bin/nvcc", "-DCMAKE_CUDA_ARCHITECTURES=" + strings.Join(k.Targets, ";"), "-DCMAKE_EXE_LINKER_FLAGS=-L" + k.Home + "/lib64/stubs", "."},
					{"/usr/bin/make", "-j" + strconv.Itoa(s.jobs)},
				}
			}},
		// STREAM's own instructions (stream.c, "Array size"): each array at least four times
		// the caches. Three arrays of 1.6 GB; such addresses need the larger code model.
		{block: "stream", pkg: "ironrail-stream", about: "STREAM, the bandwidth of memory", runs: "stream", files: []compile.Files{{Glob: "stream"}},
			recipe: func(_ stack.Toolkit, s system) [][]string {
				model := "medium"
				if s.arch == inventory.ARM64 {
					model = "large" // it has no medium one
				}
				return [][]string{{"/usr/bin/gcc", "-O3", "-fopenmp", "-fno-pic", "-no-pie", "-mcmodel=" + model, "-DSTREAM_ARRAY_SIZE=200000000", "-DNTIMES=20", "-o", "stream", "stream.c"}}
			}},
	}
}

// checksums is the program whose results are compared between GPUs, for both vendors. It
// needs no library but that of the driver: nvcc links its runtime statically, and hipcc's
// is the stack's own. Nothing may be contracted, or another compiler gives other numbers.
func checksums() []program {
	one := program{pkg: "ironrail-checksum", about: "checksums of what GPUs compute", runs: "ironrail_checksum", files: []compile.Files{{Glob: "ironrail_checksum"}}, file: "gpu_checksum.cu", own: checksumSource}
	cuda, rocm := one, one
	cuda.block, cuda.of = "cuda_checksum", "cuda"
	cuda.recipe = func(k stack.Toolkit, _ system) [][]string {
		argv := append([]string{k.Home + "/bin/nvcc", "-O3", "-std=c++14", "-fmad=false"}, strings.Fields(codeFlags(k.Targets))...)
		return [][]string{append(argv, "-Xcompiler=-ffp-contract=off,-pthread", "-o", "ironrail_checksum", one.file)}
	}
	rocm.block, rocm.of = "rocm_checksum", "rocm"
	rocm.env = func(k stack.Toolkit, _ system) []string {
		return []string{"PATH=" + k.Home + "/bin:/usr/bin:/bin", "HIP_PLATFORM=amd"}
	}
	rocm.recipe = func(k stack.Toolkit, _ system) [][]string {
		argv := []string{k.Home + "/bin/hipcc", "-x", "hip", "-O3", "-std=c++14", "-ffp-contract=off", "-pthread"}
		for _, t := range k.Targets {
			argv = append(argv, "--offload-arch="+t)
		}
		return [][]string{append(argv, "-o", "ironrail_checksum", one.file)}
	}
	return []program{cuda, rocm}
}

// codeFlags tells nvcc for which GPUs it is to make code: the fewer, the sooner it is done.
func codeFlags(targets []string) string {
	var flags []string
	for _, t := range targets {
		flags = append(flags, "-gencode=arch=compute_"+t+",code=sm_"+t)
	}
	return strings.Join(flags, " ")
}

// given are the programs whose blocks a driver has.
func given(d *inventory.Driver) []program {
	return slices.DeleteFunc(slices.Concat(programs(), checksums()), func(p program) bool {
		_, ok := inventory.Attribute(d.Value, p.block)
		return !ok
	})
}

// sourceOf is the source that a driver names for a program, or the program's own.
func sourceOf(d *inventory.Driver, p program) compile.Source {
	if p.own != nil {
		return compile.Source{At: p.file, Own: p.own}
	}
	block, _ := inventory.Attribute(d.Value, p.block)
	b := inventory.Block{Value: block}
	return compile.Source{At: b.Text("source"), Checksum: b.Text("checksum")}
}

// compiledWith are the packages that a program is compiled with, beside those of the
// stack that it is for.
func (p program) compiledWith(t distribution.Tools) []string {
	if p.cmake {
		return slices.Concat(t.Compile, t.CMake)
	}
	return t.Compile
}
