// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"strings"

	"github.com/ironrail/ironrail/inventory"
)

// Tools are the packages of a distribution's own archive with the programs that tests of
// nodes run, and with what such programs are built.
type Tools struct {
	MPI     []string // mpirun, and Open MPI for Python
	RDMA    []string // ib_write_bw and its sisters
	Disks   []string // fio
	Compile []string // make, a compiler of C and C++, Open MPI's headers
	CMake   []string // cmake, with the library of Boost that nvbandwidth takes
}

// Tools returns them by the package manager: the names differ between managers, not
// between the distributions of one.
func (f Family) Tools() Tools {
	switch f.Manager {
	case Apt:
		return Tools{MPI: []string{"openmpi-bin", "python3-mpi4py"}, RDMA: []string{"perftest"}, Disks: []string{"fio"},
			Compile: []string{"g++", "libc6-dev", "libopenmpi-dev", "make"}, CMake: []string{"cmake", "libboost-program-options-dev"}}
	case Dnf:
		return Tools{MPI: []string{"openmpi", "python3-mpi4py-openmpi"}, RDMA: []string{"perftest"}, Disks: []string{"fio"},
			Compile: []string{"bash", "coreutils", "findutils", "gcc-c++", "grep", "make", "openmpi-devel", "sed"}, CMake: []string{"boost-devel", "cmake"}}
	}
	return Tools{}
}

// Locales are the packages with a locale, such as de_DE.UTF-8: any of them, the first one the
// smallest.
func (f Family) Locales(locale string) []string {
	if f.Manager != Dnf {
		return []string{"locales-all"}
	}
	language, _, _ := strings.Cut(strings.NewReplacer(".", "_", "@", "_").Replace(locale), "_")
	return []string{"glibc-langpack-" + language, "glibc-all-langpacks"}
}

// MPIHome is the folder with include/mpi.h and lib/libmpi.so of the archive's Open MPI.
func (f Family) MPIHome(arch inventory.Arch) string {
	if f.Manager == Dnf {
		return rhelMPI
	}
	triplet := "x86_64-linux-gnu"
	if arch == inventory.ARM64 {
		triplet = "aarch64-linux-gnu"
	}
	return "/usr/lib/" + triplet + "/openmpi"
}

// The places of RHEL's Open MPI (openmpi.spec): environment-modules would put its programs and
// libraries into the paths of a shell that loads mpi/openmpi-x86_64.
const (
	rhelMPI     = "/usr/lib64/openmpi"
	rhelHeaders = "/usr/include/openmpi-"
)

// MPIRun is the program that starts jobs of the archive's Open MPI, and the folder of its libraries,
// where the linker does not look by itself; "": it does. Called by an absolute path it takes what
// it starts on other nodes from the same folder (mpirun(1), --prefix).
func (f Family) MPIRun() (program, libraries string) {
	if f.Manager == Dnf {
		return rhelMPI + "/bin/mpirun", rhelMPI + "/lib"
	}
	return "mpirun", ""
}

// MPIHeaders is the folder of mpi.h, where it is not the folder include of MPIHome; else "".
func (f Family) MPIHeaders(arch inventory.Arch) string {
	switch {
	case f.Manager != Dnf:
		return ""
	case arch == inventory.ARM64:
		return rhelHeaders + "aarch64"
	}
	return rhelHeaders + "x86_64"
}

// Mounts is the package with the program that mounts file systems of a type; "": the kernel
// alone does, or the program is in no package of the archive (Lustre, BeeGFS, Weka).
func (f Family) Mounts(kind string) string {
	list := map[string]string{"nfs": "nfs-common", "nfs4": "nfs-common", "cifs": "cifs-utils", "smb3": "cifs-utils", "ceph": "ceph-common", "glusterfs": "glusterfs-client"}
	if f.Manager == Dnf {
		list = map[string]string{"nfs": "nfs-utils", "nfs4": "nfs-utils", "cifs": "cifs-utils", "smb3": "cifs-utils", "ceph": "ceph-common", "glusterfs": "glusterfs-fuse"}
	}
	return list[kind]
}
