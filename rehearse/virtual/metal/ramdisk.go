// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/netip"
	"path"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/agent/bootfile"
	"github.com/ironrail/ironrail/provision/agent/console"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/agent/tasks"
	"github.com/ironrail/ironrail/provision/agent/write"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// ramdiskRelease is the kernel of the virtual install ramdisk.
const ramdiskRelease = "6.1.0-56-amd64"

// InstalledArguments are those of the kernel of an installed system.
const InstalledArguments = "root=LABEL=ironrail-root ro"

// FirstLine is what a kernel prints first, with its release (Linux, init/main.c).
const FirstLine = "[    0.000000] Linux version %s\r\n"

// Ramdisk is what the firmware has loaded, and the world around it.
type Ramdisk struct {
	Cmdline string   // of the kernel
	Initrd  [][]byte // segments; of those that are compressed no more than the start is looked at

	// Net is the network as the node has it at the address that its boot file gives it.
	Net        func(netip.Addr) network.Network
	KernelBoot time.Duration           // from the start of the kernel to the agent; default 25 s
	Neighbours func() []wire.Neighbour // what the links lead to; nil: not looked for
	Console    io.Writer               // must not block; nil: nobody looks
}

// hopeless is how long the ramdisk shows an error that it cannot fix, before it
// reboots, as on a real node.
const hopeless = 15 * time.Minute

// Boot runs the install ramdisk on a node: the kernel starts, the real agent finds
// its boot file and does what the controller says. It returns how the node leaves:
// Reset or Shutdown, or Halt when ctx has ended, which is loss of power or a reset
// from outside.
func (r Ramdisk) Boot(ctx context.Context, n *Node) chassis.Exit {
	log := slog.New(slog.DiscardHandler)
	if r.Console != nil {
		log = console.New(r.Console, false)
		_, _ = fmt.Fprintf(r.Console, FirstLine, ramdiskRelease) // nobody may be listening
	}
	alive, stop := r.kernelDies(ctx, n)
	defer stop()
	exit, err := r.run(alive, n, log)
	switch {
	case err == nil:
		return exit
	case ctx.Err() != nil:
		return chassis.Halt
	case alive.Err() != nil: // the kernel has stopped: the node stays as it is
		<-ctx.Done()
		return chassis.Halt
	}
	log.Error(err.Error(), "hint", errkind.Action(err), "reboot_in", hopeless)
	if n.options.Clock.Sleep(alive, hopeless) != nil {
		<-ctx.Done()
		return chassis.Halt
	}
	return chassis.Reset
}

// kernelDies returns a context that ends when the kernel stops, by itself or with
// its power.
func (r Ramdisk) kernelDies(ctx context.Context, n *Node) (context.Context, context.CancelFunc) {
	if after, ok := n.Hangs(); ok {
		return n.options.Clock.WithTimeout(ctx, after)
	}
	return context.WithCancel(ctx)
}

// run is the ramdisk from its kernel to its reboot. An error that is not that of
// ctx is hopeless.
func (r Ramdisk) run(ctx context.Context, n *Node, log *slog.Logger) (chassis.Exit, error) {
	kernel := n.Boot(ramdiskRelease, r.Cmdline, r.unpack())
	if r.KernelBoot == 0 {
		r.KernelBoot = 25 * time.Second
	}
	if err := n.options.Clock.Sleep(ctx, r.KernelBoot); err != nil {
		return 0, err
	}
	log.Info("install ramdisk", "kernel", kernel.release)
	fs := sysfs.Of(kernel.FS())
	boot, err := bootfile.Read(fs)
	if err != nil {
		return 0, err
	}
	log.Info("this is node "+boot.Node, "attempt", boot.Attempt, "controller", boot.Controller)
	if err := kernel.bringUp(boot); err != nil {
		return 0, err
	}
	system := &held{kernel: kernel, ctx: ctx}
	leave, err := r.agent(ctx, n, system, boot, log)
	switch {
	case err != nil:
		return 0, err
	case leave.SwitchRoot && system.root != nil:
		log.Info("starting the system in memory")
		n.inMemory.Store(system.root)
		return chassis.Reset, nil
	case leave.PowerOff:
		log.Info("powering off")
		return chassis.Shutdown, nil
	case leave.Kexec && kernel.loaded.Load():
		log.Info("starting the kernel of the installed system")
		n.successor.Store(true)
		return chassis.Reset, nil
	}
	log.Info("rebooting")
	return chassis.Reset, nil
}

// load is kexec_file_load(2): whatever a system has as its kernel is taken.
func (k *Kernel) load(fs.FS) wire.Kexec {
	if k.node.refuses.Load() {
		return wire.Kexec{Problem: "kexec_file_load /vmlinuz: required key not available"}
	}
	k.loaded.Store(true)
	return wire.Kexec{Kernel: "/vmlinuz", Args: InstalledArguments}
}

// RefuseKexec has the kernels of the node load no other one, as one that is locked down refuses what
// nobody signed.
func (n *Node) RefuseKexec() { n.refuses.Store(true) }

// TakesOver reports, once, whether the ramdisk has left the node to the kernel of its installed
// system, and not to its firmware.
func (n *Node) TakesOver() bool { return n.successor.Swap(false) }

// unpack returns the ramdisk's root with the boot file, when the initrd has one.
func (r Ramdisk) unpack() *Root {
	image := newTree()
	if b, err := bootfile.Find(r.Initrd...); err == nil {
		image.put(path.Clean(strings.TrimPrefix(wire.BootFile, "/")), &file{mode: 0o600, data: string(b)})
	}
	return newRoot(image)
}

// bringUp gives the NIC that booted its address.
func (k *Kernel) bringUp(boot wire.Boot) error {
	prefix, err := netip.ParsePrefix(boot.Address)
	if err != nil {
		return err
	}
	name := k.withMAC(boot.BootMAC)
	if name == "" {
		return errkind.New(errkind.NotFound, "no NIC has the boot MAC %s", boot.BootMAC).
			Do("Correct boot_mac in the inventory, or rebuild the ramdisk with the NIC's driver.")
	}
	if err := k.Up(name); err != nil {
		return err
	}
	return k.SetAddress(name, prefix)
}

// withMAC returns the interface with a MAC, or "".
func (k *Kernel) withMAC(mac addr.MAC) string {
	for i, p := range k.node.shape.ports {
		if k.node.portMAC(i) == mac && !p.ib && !k.node.missing(p.function) {
			return p.netdev
		}
	}
	return ""
}

// agent runs the agent until the controller sends the node away.
func (r Ramdisk) agent(ctx context.Context, n *Node, in *held, boot wire.Boot, log *slog.Logger) (wire.RebootParams, error) {
	prefix, err := netip.ParsePrefix(boot.Address)
	if err != nil {
		return wire.RebootParams{}, err
	}
	k, tag := in.kernel, &tagged{vlan: boot.VLAN, node: n}
	dial := tag.through(r.Net(prefix.Addr()).Dial)
	client, err := agent.PinnedClientOn(boot.Pin, dial)
	if err != nil {
		return wire.RebootParams{}, err
	}
	defer client.CloseIdleConnections()
	images := write.NewClient(dial)
	defer images.CloseIdleConnections()
	inspector := inspect.Inspector{
		FS: sysfs.Of(k.FS()), BootMAC: boot.BootMAC, RDMA: k.Device, Open: k.Opener(ctx),
	}
	a, err := agent.New(agent.Config{
		Boot: boot, BootID: k.bootID, Identity: inspector.Identity, Log: log, Clock: n.options.Clock, Client: client, Retag: tag.set,
		Handlers: tasks.Handlers(tasks.Tools{
			Inspector: inspector, Neighbours: r.Neighbours, Client: images, Mount: n.mount, MakeInitrd: n.makeInitrd, Node: &layoutNode{kernel: k}, Memory: in, EFI: &n.nvram, Shim: &n.nvram, Kexec: k.load, Workers: 1, Buffers: &n.options.Shared.buffers,
			Self: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(agentFile)), nil },
		}),
	})
	if err != nil {
		return wire.RebootParams{}, err
	}
	return a.Run(ctx)
}
