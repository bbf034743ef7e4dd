package provision

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

// inert lists what the site declares and this ironrail does nothing with, each
// with its place. Silence would be taken for done.
func inert(inv *inventory.Inventory) (out []string) {
	say := func(at hcl.Range, format string, args ...any) {
		out = append(out, fmt.Sprintf("%s:%d: %s: this ironrail does nothing with it", at.Filename, at.Start.Line, fmt.Sprintf(format, args...)))
	}
	for _, r := range inv.Roles {
		for _, m := range r.Mounts {
			say(m.Decl, "mount %q of role %s", m.Path, r.Name)
		}
		if len(r.After) > 0 {
			say(r.Decl, "`after` of role %s", r.Name)
		}
	}
	for _, h := range inv.Hosts {
		inertHost(h, say)
	}
	for _, h := range inv.Hardware {
		inertHardware(h, say)
	}
	for _, n := range inv.Networks {
		if n.DHCP.Mode == inventory.DHCPProxy {
			say(n.DHCP.Decl, "dhcp mode %q of network %s", n.DHCP.Mode, n.Name)
		}
		if n.DHCP.Pool.First.IsValid() {
			say(n.DHCP.Decl, "dhcp pool of network %s", n.Name)
		}
	}
	if inv.State.Kind != "" && inv.State.Kind != "file" {
		say(inv.State.Decl, "state %q (the state is a file)", inv.State.Kind)
	}
	return out
}

func inertHost(h *inventory.HostSettings, say func(hcl.Range, string, ...any)) {
	for _, b := range h.Bonds {
		say(b.Decl, "bond %s of host %s", b.Name, h.Name)
	}
	for _, x := range []struct {
		what  string
		given bool
	}{{"sysctl", len(h.Sysctl) > 0}, {"hold_kernel", h.HoldKernel}, {"user_data", h.UserData != ""}, {"locale", h.Locale != ""},
		{"sudo_groups", len(h.Accounts.SudoGroups) > 0}} {
		if x.given {
			say(h.Decl, "%s of host %s", x.what, h.Name)
		}
	}
}

func inertHardware(h *inventory.Hardware, say func(hcl.Range, string, ...any)) {
	if h.Versions.Decl.Filename != "" {
		say(h.Versions.Decl, "firmware versions of hardware %s", h.Name)
	}
	for _, d := range h.DPUs {
		say(d.Decl, "dpu %s of hardware %s", d.Name, h.Name)
	}
}
