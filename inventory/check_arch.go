// SPDX-License-Identifier: Apache-2.0

package inventory

import "fmt"

// checkArchitectures finds images that cannot run on the hardware of their nodes, once
// for each pair.
func (l *loader) checkArchitectures() {
	type pair struct {
		h *Hardware
		i *Image
	}
	done := map[pair]bool{}
	for _, n := range l.inv.Nodes {
		p := pair{n.Hardware, n.Image}
		if p.h == nil || p.i == nil || p.h.Arch == p.i.Arch || done[p] {
			continue
		}
		done[p] = true
		l.diags.Add("image.arch", l.place(p.i, "arch"), "Image of another architecture",
			fmt.Sprintf("Image %q is of %s, and hardware %q, which node %q is of, has processors of %s: it would not boot. Set arch of the one that is wrong; without it a block is of %s.", p.i.Name, p.i.Arch, p.h.Name, n.Name, p.h.Arch, AMD64)).
			Also("the hardware", l.place(p.h, "arch")).In(n.Decl)
	}
}

// checkSecureBoot finds hardware that asks for Secure Boot and for what boots without it: a
// BIOS has none, and no loader that is forced is signed.
func (l *loader) checkSecureBoot() {
	for _, h := range l.inv.Hardware {
		if !h.SecureBoot {
			continue
		}
		add := func(at, why string) {
			l.diags.Add("hardware.secure-boot", l.place(h, at), "Secure Boot that cannot be",
				fmt.Sprintf("Hardware %q says secure_boot = true, and %s. Set boot to \"uefi\" or \"uefi-http\", without loader; or set secure_boot = false.", h.Name, why)).
				Also("Secure Boot", l.place(h, "secure_boot")).In(h.Decl)
		}
		switch {
		case h.Boot == BootBIOS:
			add("boot", "boot is \"bios\": Secure Boot is a part of UEFI")
		case h.Loader != "":
			add("loader", fmt.Sprintf("loader is %q: nobody has signed it, and the firmware would refuse it", h.Loader))
		}
	}
}
