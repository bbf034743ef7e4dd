// SPDX-License-Identifier: Apache-2.0

package ramdisk

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The agent proper ends with switchRootStatus where process 1 is to go on with the system in memory,
// and leavesToSystem is how runChild says that.
const switchRootStatus = 86

var leavesToSystem = fmt.Sprintf("exit %d", switchRootStatus)

// systemInit is process 1 of the system in memory.
const systemInit = "/sbin/init"

// quiet takes the NICs down: the system names them anew, which the kernel refuses for those that
// are up, and gives them their addresses.
func quiet(log *slog.Logger) {
	links, err := netlink.LinkList()
	if err != nil {
		log.Warn("NICs stay up", "err", err)
		return
	}
	for _, l := range links {
		if l.Attrs().Flags&unix.IFF_UP == 0 || l.Attrs().Flags&unix.IFF_LOOPBACK != 0 {
			continue
		}
		if _, is := l.(*netlink.Vlan); is { // the system makes its own
			if err := netlink.LinkDel(l); err != nil {
				log.Warn("VLAN interface stays", "nic", l.Attrs().Name, "err", err)
			}
			continue
		}
		if err := netlink.LinkSetDown(l); err != nil {
			log.Warn("NIC stays up", "nic", l.Attrs().Name, "err", err)
			continue
		}
		addresses, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		for _, a := range addresses {
			err = errors.Join(err, netlink.AddrDel(l, &a))
		}
		if err != nil {
			log.Warn("NIC keeps its address", "nic", l.Attrs().Name, "err", err)
		}
	}
}

// switchRoot replaces process 1 by that of the system at mountPoint, as switch_root(8) does: the
// file systems of the kernel move along, the files of the ramdisk are freed. It returns only
// when it fails.
func switchRoot(log *slog.Logger) error {
	if _, err := os.Lstat(filepath.Join(mountPoint, systemInit)); err != nil { // a link that leads within the system
		return err
	}
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if err := unix.Mount(dir, filepath.Join(mountPoint, dir), "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	for _, dir := range []string{"/run", "/tmp"} { // the system has its own; the boot file with its token goes with the rest
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			log.Warn("unmount", "dir", dir, "err", err)
		}
	}
	if err := freeRamdisk(root); err != nil {
		log.Warn("files of the ramdisk stay in memory", "err", err)
	}
	log.Info("the system in memory takes over")
	time.Sleep(200 * time.Millisecond) // the line is still on its way through the serial port
	if err := errors.Join(os.Chdir(mountPoint), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/")); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	return fmt.Errorf("%s: %w", systemInit, unix.Exec(systemInit, []string{systemInit}, []string{"HOME=/", "TERM=linux"}))
}

// freeRamdisk removes the files of the ramdisk: all that lies on the file system of a folder, which
// has to be one in memory, and on none that is mounted below it.
func freeRamdisk(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return err
	}
	if st.Type != unix.RAMFS_MAGIC && st.Type != unix.TMPFS_MAGIC {
		return fmt.Errorf("%s is no file system in memory", dir)
	}
	var own unix.Stat_t
	if err := unix.Stat(dir, &own); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var is unix.Stat_t
		if err := unix.Lstat(path, &is); err != nil {
			return err
		}
		switch {
		case is.Dev != own.Dev:
			return fs.SkipDir
		case e.IsDir():
			return nil // it may have a mount below it
		}
		return os.Remove(path)
	})
}
