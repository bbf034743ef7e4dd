// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
)

// What people do to nodes between two looks. Unlike faults, these are ordinary
// changes: each leaves a node that works.

// with does something to a node of the rack.
func (w *World) with(node string, do func(*Node) error) error {
	n, ok := w.nodes[node]
	if !ok {
		return errkind.New(errkind.NotFound, "there is no virtual node %s", node)
	}
	return do(n)
}

// SetBIOS changes a setting of a node's firmware as somebody does in its setup
// screen: it is in force at once, and no BMC was asked.
func (w *World) SetBIOS(node, setting, value string) error {
	return w.with(node, func(n *Node) error {
		if err := n.chassis.SetBIOS(map[string]string{setting: value}); err != nil {
			return err
		}
		n.chassis.ApplyBIOS()
		return nil
	})
}

// DisableSecureBoot switches Secure Boot of a node off in its firmware.
func (w *World) DisableSecureBoot(node string) error {
	return w.with(node, func(n *Node) error { n.metal.DisableSecureBoot(); return nil })
}

// DropKeys empties shim's list of a node, as a reset of its firmware's variables does.
func (w *World) DropKeys(node string) error {
	return w.with(node, func(n *Node) error { n.metal.DropKeys(); return nil })
}

// TagBMC sets the VLAN that a BMC tags its frames with; 0: none.
func (w *World) TagBMC(node string, id int) error {
	return w.with(node, func(n *Node) error { n.bmcTag.Store(&id); return nil })
}

// BIOS returns the settings of a node's firmware that are in force.
func (w *World) BIOS(node string) map[string]string {
	n, ok := w.nodes[node]
	if !ok {
		return nil
	}
	now, _ := n.chassis.BIOS()
	return now
}

// SetFirmware replaces the firmware of a component, such as "BMC".
func (w *World) SetFirmware(node, component, version string) error {
	return w.with(node, func(n *Node) error {
		if err := n.chassis.Update(component, version); err != nil {
			return err
		}
		n.chassis.Activate(component)
		return nil
	})
}

// SetPackage installs a version of a package on a node that runs, or removes it
// where the version is empty.
func (w *World) SetPackage(node, name, version string) error {
	return w.running(node, func(s *system.Login) error { return s.SetPackage(name, version) })
}

// AddKernelArgument boots a node's kernel with one more argument, as far as anyone
// can see who looks at it.
func (w *World) AddKernelArgument(node, argument string) error {
	return w.running(node, func(s *system.Login) error { return s.AddKernelArgument(argument) })
}

// SetMTU changes the MTU of the interface of a port, such as rail/0, bytes.
func (w *World) SetMTU(node, port string, mtu int) error {
	return w.with(node, func(n *Node) error {
		id, err := n.port(port)
		if err != nil {
			return err
		}
		return w.running(node, func(s *system.Login) error { return s.SetMTU(id, mtu) })
	})
}

// SetLanes leaves a link so many of its lanes; no bit is damaged.
func (w *World) SetLanes(node, port string, lanes int) error {
	return w.with(node, func(n *Node) error {
		id, err := n.port(port)
		if err != nil {
			return err
		}
		return w.model.SetLanes(id, lanes)
	})
}

// DirtyLink damages one bit in 1/rate on a cable, and sends so many bytes over it
// to the same port of another node.
func (w *World) DirtyLink(node, port, to string, rate float64, bytes int64) error {
	return w.with(node, func(n *Node) error {
		a, err := n.port(port)
		if err != nil {
			return err
		}
		return w.with(to, func(m *Node) error {
			b, err := m.port(port)
			if err != nil {
				return err
			}
			if err := w.model.SetErrors(a, rate); err != nil {
				return err
			}
			w.model.Carry(a, b, 1, bytes)
			return nil
		})
	})
}

// running does something in the system of a node that runs.
func (w *World) running(node string, do func(*system.Login) error) error {
	s, ok := w.systems.Login(node)
	if !ok {
		return errkind.New(errkind.Unreachable, "the system of virtual node %s does not run", node)
	}
	return do(s)
}

// Unmount takes a shared file system from a node that runs: somebody unmounted it.
func (w *World) Unmount(node, path string) error {
	return w.running(node, func(l *system.Login) error { return l.Unmount(path) })
}

// RefuseKexec has the ramdisk of a node load no kernel for kexec.
func (w *World) RefuseKexec(node string) error {
	return w.with(node, func(n *Node) error { n.metal.RefuseKexec(); return nil })
}

// HangAfterKexec has a node stay dark whose ramdisk starts its installed system: a device does not
// come up again without the firmware.
func (w *World) HangAfterKexec(node string) error {
	return w.with(node, func(n *Node) error { n.stuck.Store(true); return nil })
}
