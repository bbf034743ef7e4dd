// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/console"
	"github.com/ironrail/ironrail/provision/agent/kexec"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// ChildArg is the argument with which Init starts its own program again, as the
// agent proper.
const ChildArg = "ramdisk"

// A kernel without process 1 panics, so process 1 does next to nothing: it
// mounts, reaps, and keeps the agent, its only child, running.
const (
	restartWait = 5 * time.Second
	restarts    = 30 // failures in a row before the node is rebooted
	steadyAfter = 10 * time.Minute
)

// variables is where the kernel shows the variables of UEFI; it is there on UEFI only.
const variables = "/sys/firmware/efi/efivars"

// mounts are what a program expects to find.
var mounts = []struct{ source, target, kind, options string }{
	{"proc", "/proc", "proc", ""},
	{"sysfs", "/sys", "sysfs", ""},
	{"securityfs", "/sys/kernel/security", "securityfs", ""}, // says whether the kernel is locked down
	{"devtmpfs", "/dev", "devtmpfs", "mode=0755"},
	{"tmpfs", "/run", "tmpfs", "mode=0755"},
	{"tmpfs", "/tmp", "tmpfs", "mode=1777"},
}

// Init is process 1 of the install ramdisk. It never returns. out is the console.
func Init(out io.Writer) {
	log := console.New(out, false)
	defer func() {
		if p := recover(); p != nil {
			log.Error("defect in process 1", "panic", fmt.Sprint(p))
		}
		for {
			time.Sleep(time.Hour) // returning would be a kernel panic without a reason on the screen
		}
	}()
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	for _, err := range mountAll() {
		log.Warn("mount", "err", err)
	}
	log.Info("install ramdisk", "kernel", release())
	for failures := 0; ; {
		began := time.Now()
		status, err := runChild()
		if status == leavesToSystem {
			err = switchRoot(log)
			log.Error("the system in memory cannot be started; the node is rebooted", "err", err)
			Leave(log, wire.RebootParams{})
		}
		if time.Since(began) > steadyAfter {
			failures = 0
		}
		failures++
		log.Error("the agent has ended; it is started again", "status", status, "err", err, "failures", failures)
		if failures >= restarts {
			log.Error("the agent keeps ending; the node is rebooted")
			Leave(log, wire.RebootParams{})
		}
		time.Sleep(restartWait)
	}
}

// mountAll makes the file systems of the ramdisk. What is mounted already stays.
func mountAll() (errs []error) {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			errs = append(errs, err)
		}
		err := unix.Mount(m.source, m.target, m.kind, unix.MS_NOSUID, m.options)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			errs = append(errs, fmt.Errorf("%s: %w", m.target, err))
		}
	}
	return errs
}

// mountVariables makes the variables of UEFI readable. Its file system is a module with
// most distributions, so that process 1 cannot do it before modules are loaded.
func mountVariables() error {
	if _, err := os.Stat(variables); err != nil {
		return nil // not UEFI
	}
	err := unix.Mount("efivarfs", variables, "efivarfs", unix.MS_NOSUID, "")
	if errors.Is(err, unix.EBUSY) {
		return nil
	}
	return err
}

// runChild starts the agent and reaps every process that ends, until it is the
// agent. Only process 1 may do so; the agent waits for its own children itself.
func runChild() (status string, err error) {
	self := "/init"
	if path, err := os.Executable(); err == nil {
		self = path
	}
	child, err := os.StartProcess(self, []string{self, ChildArg}, &os.ProcAttr{
		Dir: "/", Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return "", err
	}
	pid := child.Pid
	child.Release()
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return "", err
		case got == pid && ws.Signaled():
			return "killed by " + ws.Signal().String(), nil
		case got == pid:
			return fmt.Sprintf("exit %d", ws.ExitStatus()), nil
		}
	}
}

// Leave ends the ramdisk: what is written goes to the disks, file systems are
// taken off, and the kernel reboots, powers off, or starts the kernel that is loaded; or process
// 1, whose child this is, starts the system in memory. It does not return.
func Leave(log *slog.Logger, to wire.RebootParams) {
	if to.SwitchRoot {
		log.Info("starting the system in memory")
		quiet(log)
		os.Exit(switchRootStatus) // only process 1 can
	}
	unix.Sync()
	for _, dir := range []string{mountPoint} {
		if err := unix.Unmount(dir, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			log.Warn("unmount", "dir", dir, "err", err)
			unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, "")
		}
	}
	unix.Sync()
	how, word := unix.LINUX_REBOOT_CMD_RESTART, "rebooting"
	switch {
	case to.PowerOff:
		how, word = unix.LINUX_REBOOT_CMD_POWER_OFF, "powering off"
	case to.Kexec && kexec.Loaded(sysfs.Dir(root)):
		how, word = unix.LINUX_REBOOT_CMD_KEXEC, "starting the kernel of the installed system"
	}
	log.Info(word)
	time.Sleep(200 * time.Millisecond) // the line is still on its way through the serial port
	for {
		err := unix.Reboot(how)
		if how == unix.LINUX_REBOOT_CMD_KEXEC {
			log.Warn("the kernel does not start the other one; rebooting", "err", err)
			how = unix.LINUX_REBOOT_CMD_RESTART
			continue
		}
		log.Error("the kernel does not reboot", "err", err, "hint", "Power-cycle the node by its BMC.")
		time.Sleep(time.Minute)
	}
}

// release returns the kernel's release, such as 6.1.0-56-amd64.
func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// beModprobe puts this program where the kernel looks for modprobe.
func beModprobe() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile("/proc/sys/kernel/modprobe")
	if err != nil {
		return err
	}
	path := filepath.Clean(string(b[:max(0, len(b)-1)]))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Symlink(self, path); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// fatal says what is wrong and what to do, again and again, and reboots after a
// while: nothing is being written, since the agent has not begun.
func fatal(ctx context.Context, log *slog.Logger, err error, action string) {
	const repeat, patience = time.Minute, 15 * time.Minute
	if action == "" {
		action = "Look at the lines above, then netboot the node again."
	}
	for until := time.Now().Add(patience); time.Now().Before(until) && ctx.Err() == nil; time.Sleep(repeat) {
		log.Error(err.Error(), "hint", action, "reboot_in", time.Until(until).Round(time.Minute))
	}
	Leave(log, wire.RebootParams{})
}
