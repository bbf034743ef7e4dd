// SPDX-License-Identifier: Apache-2.0

package system

// vbios is the version of the firmware of NVIDIA's GPUs: the one that the hardware
// block asks for.
func (n *node) vbios() string {
	if want := n.cfg.Hardware.Versions.GPU; !want.IsZero() {
		return want.Version
	}
	return "96.00.89.00.01"
}
