// SPDX-License-Identifier: Apache-2.0

package system

import (
	"maps"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// Login is somebody at a running system who may do everything. What is done is
// gone with the system, where it would be on a real one.
type Login struct{ n *node }

// Login finds the system of a node; false when it does not run.
func (s *Site) Login(name string) (*Login, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.up {
		if n.cfg.Node == name {
			return &Login{n}, true
		}
	}
	return nil, false
}

// SetPackage installs a version of a package, or removes it: version "".
func (l *Login) SetPackage(name, version string) error {
	if version == "" {
		have := l.n.packages()
		delete(have, name)
		l.n.dpkg.mu.Lock()
		l.n.dpkg.have = maps.Clone(have)
		l.n.dpkg.mu.Unlock()
		return l.n.add(nil)
	}
	return l.n.add(map[string]string{name: version})
}

// AddKernelArgument adds an argument to the command line that the kernel shows.
func (l *Login) AddKernelArgument(argument string) error {
	l.n.tree.set("proc/cmdline", strings.TrimSpace(l.n.fs.Text("proc/cmdline")+" "+argument)+"\n")
	return nil
}

// SetMTU sets the MTU of a port's interface, bytes.
func (l *Login) SetMTU(id model.PortID, mtu int) error {
	for _, p := range l.n.cfg.Ports {
		if p.ID == id {
			return l.n.cfg.Kernel.SetLink(p.Netdev, mtu)
		}
	}
	return errkind.New(errkind.NotFound, "%s has no port %s", l.n.cfg.Node, id)
}

// Unmount is umount(8) of a place.
func (l *Login) Unmount(path string) error {
	l.n.tree.set(mountTable, strings.Join(l.n.mountLines(path), ""))
	return nil
}
