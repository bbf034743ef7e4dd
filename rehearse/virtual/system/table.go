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

// commands are the programs by name, but for env and timeout.
var commands = map[string]program{
	"sh": {run: sh}, "dash": {run: sh}, "bash": {run: sh}, "true": {run: exits(0)}, "false": {run: exits(1)}, "test": {run: test}, "[": {run: test},
	"echo": {run: echo}, "printf": {run: printf}, "cat": {run: cat}, "head": {run: lines}, "tail": {run: lines}, "grep": {run: grep},
	"sha256sum": {run: sha256sum}, "sleep": {run: sleep}, "kill": {run: kill},

	"dirname": {run: dirname}, "basename": {run: basename}, "mkdir": {run: mkdir}, "mktemp": {run: mktemp}, "chmod": {run: chmod},
	"chown": {run: present}, "sync": {run: present}, "mv": {run: mv}, "cp": {run: cp}, "rm": {run: rm}, "rmdir": {run: rmdir}, "ln": {run: ln},
	"install": {run: install}, "ls": {run: ls}, "touch": {run: touch}, "readlink": {run: readlink}, "tee": {run: tee}, "find": {run: find},

	"hostname": {run: hostnameProgram}, "uname": {run: uname},
	"uptime": {run: small}, "date": {run: small}, "id": {run: small}, "whoami": {run: small}, "nproc": {run: small},
	"modprobe": {run: modprobe}, "lsmod": {run: lsmod}, "modinfo": {run: modinfo}, "ldconfig": {run: ldconfig}, "update-initramfs": {run: updateInitramfs},
	"groupadd": {run: exits(0)}, "sysctl": {run: sysctl}, "dmesg": {run: dmesg}, "journalctl": {run: journalctl}, "chronyc": {pkgChrony, chronyc},
	"dmidecode": {run: dmidecode}, "lscpu": {run: lscpu}, "systemctl": {run: systemctl},
	"reboot": {run: leaveProgram}, "poweroff": {run: leaveProgram}, "shutdown": {run: leaveProgram},
	"apt-get": {run: aptGet}, "apt-mark": {run: aptMark}, "dpkg-query": {run: dpkgQuery}, "kubeadm": {run: kubeadm},

	"ip": {run: ip}, "ethtool": {run: ethtool}, "rdma": {run: rdmaProgram}, "ib_write_bw": {pkgPerftest, writeBW}, "ib_write_lat": {pkgPerftest, writeBW},
	"ibv_devices": {pkgVerbs, ibvDevices}, "ibv_devinfo": {pkgVerbs, ibvDevinfo}, "ibstat": {pkgDiags, ibstat},

	"mpirun": {pkgMPI, mpirun}, "mpiexec": {pkgMPI, mpirun}, "orterun": {pkgMPI, mpirun}, perfProgram: {pkgMPI, allReducePerf}, "python3": {pkgMPI4Py, python},
	"nvidia-imex-ctl": {run: imexCtl}, "nvidia-smi": {run: nvidiaSMI}, "amd-smi": {run: amdSMI}, "dcgmi": {run: dcgmi},
}

// lookup returns what a program's name stands for.
func lookup(name string) (program, bool) {
	switch name { // they look up what they start: a table with them would refer to itself
	case "env":
		return program{run: env}, true
	case "timeout":
		return program{run: timeout}, true
	}
	p, ok := commands[name]
	return p, ok
}

// exits is a program that does nothing else.
func exits(status int) func(context.Context, call) int {
	return func(context.Context, call) int { return status }
}
