// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"os/exec"
	"syscall"
)

// Jail is where a program runs that was not made by people whom this controller trusts:
// in a root file system of its own, as a user without rights, without a network, and
// with an environment that has nothing of this process's. It takes root to make one.
type Jail struct {
	Root string // root file system
	User uint32 // its own and its group's number
}

// jailPath is the PATH of programs in a jail.
const jailPath = "PATH=/usr/local/bin:/usr/bin:/bin"

// enclose makes a command run in the jail. argv[0] of it is an absolute path below the
// root, and its folder is one as well. setpriv(1), which is essential in Debian and
// Ubuntu, keeps it from gaining rights by files of the root.
func (j Jail) enclose(cmd *exec.Cmd, env []string) {
	cmd.Env = append([]string{jailPath, "LC_ALL=C.UTF-8", "TZ=UTC"}, env...)
	cmd.SysProcAttr.Chroot = j.Root
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: j.User, Gid: j.User}
	// The first of a process namespace takes its children along, and hears SIGKILL alone.
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// jailed is the command line with which a program starts in a jail.
func jailed(argv []string) []string {
	return append([]string{"/usr/bin/setpriv", "--no-new-privs", "--inh-caps=-all", "--"}, argv...)
}
