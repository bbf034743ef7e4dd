package system

import "context"

// Packages that programs come with (Debian 12).
const (
	pkgPerftest = "perftest"
	pkgVerbs    = "ibverbs-utils"
	pkgDiags    = "infiniband-diags"
	pkgMPI      = "openmpi-bin"
	pkgMPI4Py   = "python3-mpi4py"
	pkgChrony   = "chrony"
)

// lookup returns what a program's name stands for.
func lookup(name string) (program, bool) {
	base := func(run func(context.Context, call) int) (program, bool) { return program{run: run}, true }
	of := func(pkg string, run func(context.Context, call) int) (program, bool) { return program{pkg, run}, true }
	switch name {
	case "sh", "dash", "bash":
		return base(sh)
	case "true":
		return base(func(context.Context, call) int { return 0 })
	case "false":
		return base(func(context.Context, call) int { return 1 })
	case "test", "[":
		return base(test)
	case "echo":
		return base(echo)
	case "printf":
		return base(printf)
	case "cat":
		return base(cat)
	case "head", "tail":
		return base(lines)
	case "grep":
		return base(grep)
	case "sha256sum":
		return base(sha256sum)
	case "env":
		return base(env)
	case "timeout":
		return base(timeout)
	case "sleep":
		return base(sleep)
	case "kill":
		return base(kill)
	}
	if p, ok := lookupFile(name); ok {
		return p, ok
	}
	switch name {
	case "hostname":
		return base(hostnameProgram)
	case "uname":
		return base(uname)
	case "uptime", "date", "id", "whoami", "nproc":
		return base(small)
	case "modprobe":
		return base(modprobe)
	case "lsmod":
		return base(lsmod)
	case "modinfo":
		return base(modinfo)
	case "ldconfig":
		return base(ldconfig)
	case "update-initramfs":
		return base(updateInitramfs)
	case "find":
		return base(find)
	case "groupadd":
		return base(func(context.Context, call) int { return 0 })
	case "sysctl":
		return base(sysctl)
	case "dmesg":
		return base(dmesg)
	case "journalctl":
		return base(journalctl)
	case "chronyc":
		return of(pkgChrony, chronyc)
	case "dmidecode":
		return base(dmidecode)
	case "lscpu":
		return base(lscpu)
	case "systemctl":
		return base(systemctl)
	case "reboot", "poweroff", "shutdown":
		return base(leaveProgram)
	case "ip":
		return base(ip)
	case "ethtool":
		return base(ethtool)
	case "rdma":
		return base(rdmaProgram)
	case "apt-get":
		return base(aptGet)
	case "apt-mark":
		return base(aptMark)
	case "dpkg-query":
		return base(dpkgQuery)
	case "ib_write_bw":
		return of(pkgPerftest, writeBW)
	case "ib_write_lat":
		return of(pkgPerftest, writeBW)
	case "ibv_devices":
		return of(pkgVerbs, ibvDevices)
	case "ibv_devinfo":
		return of(pkgVerbs, ibvDevinfo)
	case "ibstat":
		return of(pkgDiags, ibstat)
	case "mpirun", "mpiexec", "orterun":
		return of(pkgMPI, mpirun)
	case perfProgram:
		return of(pkgMPI, allReducePerf)
	case "python3":
		return of(pkgMPI4Py, python)
	case "nvidia-imex-ctl":
		return base(imexCtl)
	case "kubeadm":
		return base(kubeadm)
	case "nvidia-smi":
		return base(nvidiaSMI)
	case "amd-smi":
		return base(amdSMI)
	case "dcgmi":
		return base(dcgmi)
	}
	return program{}, false
}

// lookupFile is the part of lookup for programs that move files.
func lookupFile(name string) (program, bool) {
	table := [...]struct {
		name string
		run  func(context.Context, call) int
	}{
		{"dirname", dirname}, {"basename", basename}, {"mkdir", mkdir}, {"mktemp", mktemp}, {"chmod", chmod},
		{"chown", present}, {"sync", present}, {"mv", mv}, {"cp", cp}, {"rm", rm}, {"rmdir", rmdir}, {"ln", ln},
		{"install", install}, {"ls", ls}, {"touch", touch}, {"readlink", readlink}, {"tee", tee},
	}
	for _, p := range table {
		if p.name == name {
			return program{run: p.run}, true
		}
	}
	return program{}, false
}
