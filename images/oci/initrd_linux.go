// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// inRoot runs a program of the root file system in it, as root, with /proc, a /dev of a
// few nodes and no network. Its mounts are in a namespace of their own: they go with the
// thread, also when this process is killed.
func inRoot(ctx context.Context, root string, each func(string), argv []string) error {
	return onOwnThread(func() error {
		if err := enterNamespace(root); err != nil {
			return errkind.New(errkind.Unsupported, "this controller cannot mount for it: %w", err).
				Do("Make the initrd in the image itself, or build on a controller whose root may mount.")
		}
		r := tool.Runner{Dir: "/", Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/var/tmp", "DEBIAN_FRONTEND=noninteractive"}}
		return r.Run(ctx, each, append([]string{"chroot", root}, argv...)...)
	})
}

// onOwnThread runs do on a thread that ends with it, and the namespaces that do enters
// with the thread. It is never the main thread: that one does not end, and /proc/self is
// its view.
func onOwnThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			err := onOwnThread(do) // on another one, since this goroutine holds the main thread
			runtime.UnlockOSThread()
			result <- err
			return
		}
		result <- do() // never unlocked: so the thread ends
	}()
	return <-result
}

// devices are the nodes that programs expect in /dev.
var devices = []struct {
	name         string
	major, minor uint32
}{{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}}

// enterNamespace moves this thread into namespaces of its own and mounts there.
func enterNamespace(root string) error {
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS); err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	dev, proc := filepath.Join(root, "dev"), filepath.Join(root, "proc")
	for _, dir := range []string{dev, proc} { // the image is not trusted: what it has there may be a link
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			return errors.Join(err, errkind.New(errkind.Invalid, "%s is no folder", dir))
		}
	}
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=16m"); err != nil {
		return fmt.Errorf("/dev: %w", err)
	}
	for _, d := range devices {
		if err := unix.Mknod(filepath.Join(dev, d.name), unix.S_IFCHR|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("/dev/%s: %w", d.name, err)
		}
	}
	if err := os.Symlink("/proc/self/fd", filepath.Join(dev, "fd")); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	return nil
}
