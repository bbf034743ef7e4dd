// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"log/slog"
	"slices"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/kmod"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// modules are loaded by name besides what the hardware asks for: file systems of
// the disk that was written, logical volumes, the firmware's variables, and a source of
// randomness for the keys made here.
var modules = []string{"ext4", "vfat", "nls_cp437", "nls_ascii", "dm_mod", "efivarfs", "virtio_rng"}

// Disks come late: a driver that is loaded still looks for its devices, NVMe for
// a second or two, a SAS expander for half a minute. Hardware counts as complete
// when nothing new has come for a while, and at the latest after a minute.
const (
	plugEvery   = 250 * time.Millisecond
	plugQuiet   = 2 * time.Second
	plugLongest = time.Minute
)

// plug loads the drivers of what is there, and goes on doing so for what comes;
// settled is closed when nothing more comes. A node whose NIC and disk have
// built-in drivers needs no modules, so nothing here is fatal.
func plug(fs sysfs.FS, log *slog.Logger) (settled <-chan struct{}) {
	if err := beModprobe(); err != nil {
		log.Warn("the kernel cannot ask for modules", "err", err)
	}
	tree, err := kmod.Open(root, release())
	if err != nil {
		log.Warn("no kernel modules", "err", err, "hint", errkind.Action(err))
		tree = nil
	}
	coldplug(tree, log)
	if tree != nil {
		for _, m := range modules {
			if err := tree.Load(m); err != nil && errkind.Of(err) != errkind.Unsupported {
				log.Warn("module not loaded", "module", m, "err", err)
			}
		}
	}
	if err := mountVariables(); err != nil {
		log.Warn("the firmware's variables are not there: the boot order is neither read nor written", "err", err)
	}
	done := make(chan struct{})
	go func() { // ends by itself within plugLongest
		defer close(done)
		settle(tree, fs, log)
	}()
	return done
}

// settle serves devices that come later, until they stop coming.
func settle(tree *kmod.Tree, fs sysfs.FS, log *slog.Logger) {
	began := time.Now()
	last, devices := began, present(fs)
	for time.Since(last) < plugQuiet && time.Since(began) < plugLongest {
		time.Sleep(plugEvery)
		loaded := coldplug(tree, log)
		if now := present(fs); loaded > 0 || !slices.Equal(now, devices) {
			last, devices = time.Now(), now
		}
	}
}

// coldplug loads drivers for the devices that have none yet.
func coldplug(tree *kmod.Tree, log *slog.Logger) int {
	if tree == nil {
		return 0
	}
	loaded, err := tree.Coldplug(root + "sys")
	if err != nil {
		log.Warn("some drivers were not loaded", "err", err)
	}
	if loaded > 0 {
		log.Info("drivers loaded", "modules", loaded)
	}
	return loaded
}

// present lists the disks and network interfaces.
func present(fs sysfs.FS) []string {
	return append(fs.Names("sys/block"), fs.Names("sys/class/net")...)
}
