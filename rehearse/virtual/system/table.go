// SPDX-License-Identifier: Apache-2.0

package system

import "context"

// Packages that programs come with (Debian 12).
const (
	pkgPerftest = "perftest"
	pkgChecksum = "ironrail-checksum"
	pkgVerbs    = "ibverbs-utils"
	pkgDiags    = "infiniband-diags"
	pkgMPI      = "openmpi-bin"
	pkgMPI4Py   = "python3-mpi4py"
	rhelMPI     = "openmpi"
	pkgChrony   = "chrony"
)

// depends are packages that are empty here, and of which the real ones depend on the one
// of a program, or have it by another name: DOCA's profiles (DOCA Profiles, "Supported
// Packages"), and RHEL's.
var depends = map[string][]string{pkgPerftest: {"doca-ofed", "doca-networking", "doca-all"}, pkgVerbs: {"libibverbs-utils"}, pkgMPI: {rhelMPI}, pkgMPI4Py: {"python3-mpi4py-openmpi"}}

// commands are the programs by name, but for env and timeout.
var commands = map[string]program{
	"sh": {run: runShell}, "dash": {run: runShell}, "bash": {run: runShell}, "true": {run: exitWith(0)}, "false": {run: exitWith(1)}, "test": {run: runTest}, "[": {run: runTest},
	"echo": {run: runEcho}, "printf": {run: runPrintf}, "cat": {run: runCat}, "head": {run: runLines}, "tail": {run: runLines}, "grep": {run: runGrep},
	"sha256sum": {run: sha256sum}, "sleep": {run: runSleep}, "kill": {run: runKill},

	"dirname": {run: runDirname}, "basename": {run: runBasename}, "mkdir": {run: runMkdir}, "mktemp": {run: runMktemp}, "chmod": {run: runChmod},
	"chown": {run: runPresent}, "sync": {run: runPresent}, "mv": {run: runMv}, "cp": {run: runCp}, "rm": {run: runRm}, "rmdir": {run: runRmdir}, "ln": {run: runLn},
	"install": {run: runInstall}, "ls": {run: runLs}, "touch": {run: runTouch}, "readlink": {run: runReadlink}, "tee": {run: runTee}, "find": {run: runFind}, "stat": {run: runStat},

	"hostname": {run: hostnameProgram}, "uname": {run: runUname},
	"uptime": {run: runSmall}, "date": {run: runSmall}, "id": {run: runSmall}, "whoami": {run: runSmall}, "nproc": {run: runSmall},
	"modprobe": {run: runModprobe}, "lsmod": {run: runLsmod}, "modinfo": {run: runModinfo}, "ldconfig": {run: runLdconfig}, "ldd": {run: runLdd}, "update-initramfs": {run: updateInitramfs},
	"groupadd": {run: exitWith(0)}, "sysctl": {run: runSysctl}, "systemd-sysctl": {run: systemdSysctl}, "locale": {run: runLocale}, "dmesg": {run: runDmesg}, "journalctl": {run: runJournalctl}, "chronyc": {pkgChrony, runChronyc},
	"dmidecode": {run: runDmidecode}, "lscpu": {run: runLscpu}, "systemctl": {run: runSystemctl},
	"reboot": {run: leaveProgram}, "poweroff": {run: leaveProgram}, "shutdown": {run: leaveProgram},
	"apt-get": {run: aptGet}, "apt-mark": {run: aptMark}, "dpkg-query": {run: dpkgQuery}, "dnf": {run: runDnf}, "rpm": {run: runRPM}, "dracut": {run: runDracut}, "kubeadm": {run: runKubeadm},

	"cryptsetup": {run: runCryptsetup}, "systemd-cryptenroll": {run: runCryptenroll}, "wipefs": {run: runWipefs}, "mkfs.ext4": {run: runMkfs}, "mkfs.xfs": {run: runMkfs},

	"netplan": {run: runNetplan}, "ip": {run: runIP}, "ethtool": {run: runEthtool}, "rdma": {run: rdmaProgram}, "ironrail_checksum": {pkgChecksum, runChecksum}, "ib_write_bw": {pkgPerftest, writeBW}, "ib_write_lat": {pkgPerftest, writeBW},
	"ibv_devices": {pkgVerbs, ibvDevices}, "ibv_devinfo": {pkgVerbs, ibvDevinfo}, "ibstat": {pkgDiags, runIbstat},

	"mpirun": {pkgMPI, runMpirun}, "mpiexec": {pkgMPI, runMpirun}, "orterun": {pkgMPI, runMpirun},
	perfProgram + withMPI: {pkgMPI, allReducePerf}, "all_gather_perf" + withMPI: {pkgMPI, allReducePerf}, "reduce_scatter_perf" + withMPI: {pkgMPI, allReducePerf},
	"alltoall_perf" + withMPI: {pkgMPI, allReducePerf}, "sendrecv_perf" + withMPI: {pkgMPI, allReducePerf}, "python3": {pkgMPI4Py, runPython},
	"nvidia-imex-ctl": {run: imexCtl}, "nvidia-smi": {run: nvidiaSMI}, "amd-smi": {run: amdSMI}, "dcgmi": {run: runDcgmi},
	"nvidia-bug-report.sh": {run: nvidiaBugReport}, "mlxlink": {run: runMlxlink},
	"mlxconfig": {run: runMlxconfig}, "mstconfig": {run: runMlxconfig},
}

// lookupProgram returns what a program's name stands for.
func lookupProgram(name string) (program, bool) {
	switch name { // they look up what they start: a table with them would refer to itself
	case "env":
		return program{run: runEnv}, true
	case "timeout":
		return program{run: runTimeout}, true
	}
	p, ok := commands[name]
	return p, ok
}

// exitWith returns a program that does nothing else.
func exitWith(status int) func(context.Context, call) int {
	return func(context.Context, call) int { return status }
}
