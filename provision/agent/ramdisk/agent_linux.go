// SPDX-License-Identifier: Apache-2.0

// Package ramdisk is the agent as /init of the install ramdisk: process 1, kernel
// modules, the boot NIC, the console, and the tasks put together.
package ramdisk

import (
	"context"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/Mellanox/rdmamap"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/agent/bootfile"
	"github.com/ironrail/ironrail/provision/agent/configure"
	"github.com/ironrail/ironrail/provision/agent/console"
	"github.com/ironrail/ironrail/provision/agent/efiboot"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/kexec"
	"github.com/ironrail/ironrail/provision/agent/kmod"
	"github.com/ironrail/ironrail/provision/agent/lldp"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/secureboot"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/agent/tasks"
	"github.com/ironrail/ironrail/provision/agent/volumes"
	"github.com/ironrail/ironrail/provision/agent/write"
)

// root is the root of the ramdisk.
const root = "/"

// mountPoint is where the root file system of the disk is mounted.
const mountPoint = "/mnt"

// results is where results outlive a crash of the agent, for this boot.
const results = "/run/ironrail"

// memoryFolder is where a system in memory has its image and what is written to it.
const memoryFolder = "/memory"

// Main is the agent proper, the child of Init. It returns never in good order:
// the node reboots. An error is a reason to start it again.
func Main(ctx context.Context, out io.Writer) error {
	fs := sysfs.Dir(root)
	_, debug := bootfile.Parameters(fs)["ironrail.debug"]
	log := console.New(out, debug)
	settled := plug(fs, log)
	boot, err := bootfile.Read(fs)
	if err != nil {
		fatal(ctx, log, err, errkind.Action(err))
	}
	log = console.New(out, debug || boot.Debug)
	log.Info("this is node "+boot.Node, "attempt", boot.Attempt, "controller", boot.Controller)
	if err := bringUp(ctx, fs, boot, log); err != nil {
		fatal(ctx, log, err, errkind.Action(err))
	}
	if err := os.MkdirAll(results, 0o700); err != nil {
		log.Warn("results are not kept over a crash of the agent", "err", err)
	}
	a, err := agent.New(config(ctx, fs, boot, settled, log))
	if err != nil {
		fatal(ctx, log, err, errkind.Action(err))
	}
	leave, err := a.Run(ctx)
	if err != nil {
		return err
	}
	Leave(log, leave)
	return nil
}

// config puts the tasks together.
func config(ctx context.Context, fs sysfs.FS, boot wire.Boot, settled <-chan struct{}, log *slog.Logger) agent.Config {
	self, err := os.Executable()
	if err != nil {
		self = "/init"
	}
	inspector := inspect.Inspector{FS: fs, BootMAC: boot.BootMAC, RDMA: rdmaDevice}
	return agent.Config{
		Boot:     boot,
		BootID:   fs.Text("proc/sys/kernel/random/boot_id"),
		Identity: inspector.Identity,
		Handlers: tasks.Handlers(tasks.Tools{
			Inspector: inspector, Settled: settled, Client: write.NewClient(nil), Mount: configure.At(mountPoint), MakeInitrd: configure.InitrdAt(mountPoint), Node: volumes.OnNode{Tools: wire.ToolsFolder, At: mountPoint},
			Memory:     memory.OnNode{Folder: memoryFolder, At: mountPoint, Load: load},
			EFI:        efiboot.Dir("/" + efiboot.Folder),
			Shim:       secureboot.Dir("/" + efiboot.Folder),
			Kexec:      func(system iofs.FS) wire.Kexec { return kexec.Prepare(fs, system, kexec.Load) },
			Self:       func() (io.ReadCloser, error) { return os.Open(self) },
			Neighbours: lldp.OnNode(ctx, lldp.Packets{}, fs, settled),
		}),
		SetClock: setClock,
		Retag:    func(tagged bool) error { return retag(fs, boot, tagged) },
		Log:      log,
		Memory:   results,
	}
}

// rdmaDevice asks rdmamap, which reads /sys of this very node.
func rdmaDevice(netdev string) string {
	device, err := rdmamap.GetRdmaDeviceForNetdevice(netdev)
	if err != nil {
		return "" // it has none
	}
	return device
}

// setClock sets the system clock; the agent's own deadlines are monotonic.
func setClock(t time.Time) error {
	tv := unix.NsecToTimeval(t.UnixNano())
	return unix.Settimeofday(&tv)
}

// Modprobe answers the kernel's request for modules: modprobe -q -- NAME...
func Modprobe(args []string) error {
	return load(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "" || a[0] == '-' })...)
}

// load loads kernel modules, by their names or aliases.
func load(modules ...string) error {
	tree, err := kmod.Open(root, release())
	if err != nil {
		return err
	}
	for _, m := range modules {
		if err := tree.Load(m); err != nil {
			return err
		}
	}
	return nil
}
