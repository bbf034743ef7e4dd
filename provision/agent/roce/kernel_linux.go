// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/Mellanox/rdmamap"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Kernel is the running kernel's Network and RDMA, by netlink and rdmamap.
type Kernel struct{}

// Addresses returns the global addresses of an interface.
func (Kernel) Addresses(netdev string) ([]netip.Prefix, error) {
	link, err := byName(netdev)
	if err != nil {
		return nil, err
	}
	list, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("addresses of %s: %w", netdev, err)
	}
	var out []netip.Prefix
	for _, a := range list {
		ip, ok := netip.AddrFromSlice(a.IP)
		if !ok || ip.Unmap().IsLinkLocalUnicast() {
			continue
		}
		bits, _ := a.Mask.Size()
		out = append(out, netip.PrefixFrom(ip.Unmap(), bits))
	}
	return out, nil
}

// SetLink sets the MTU and brings the interface up.
func (Kernel) SetLink(netdev string, mtu int) error {
	link, err := byName(netdev)
	if err != nil {
		return err
	}
	if link.Attrs().MTU != mtu {
		if err := netlink.LinkSetMTU(link, mtu); err != nil {
			return errkind.New(errkind.Refused, "set MTU %d of %s: %w", mtu, netdev, err).Do("Set an MTU that this NIC can do.")
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", netdev, err)
	}
	return nil
}

// SetAddress adds an address.
func (Kernel) SetAddress(netdev string, address netip.Prefix) error {
	link, err := byName(netdev)
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil {
		return fmt.Errorf("address %s of %s: %w", address, netdev, err)
	}
	return nil
}

// DropAddress removes an address; its absence is no error.
func (Kernel) DropAddress(netdev string, address netip.Prefix) error {
	link, err := byName(netdev)
	if err != nil {
		return err
	}
	if err := netlink.AddrDel(link, &netlink.Addr{IPNet: ipNet(address)}); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove address %s of %s: %w", address, netdev, err)
	}
	return nil
}

// Routing reports whether exactly the rule and the routes of r are there.
func (Kernel) Routing(netdev string, r Route) (bool, error) {
	link, err := byName(netdev)
	if err != nil {
		return false, err
	}
	rules, err := rulesOf(r)
	if err != nil || len(rules) != 1 || !sameRule(rules[0], r) {
		return false, err
	}
	routes, err := netlink.RouteListFiltered(family(r.Address.Addr()), &netlink.Route{Table: r.Table, LinkIndex: link.Attrs().Index}, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_OIF)
	if err != nil {
		return false, fmt.Errorf("routes of table %d: %w", r.Table, err)
	}
	direct, gateway := false, !r.Gateway.IsValid()
	for _, route := range routes {
		switch {
		case route.Gw == nil && route.Dst != nil && route.Dst.String() == r.Address.Masked().String():
			direct = true
		case route.Gw != nil && r.Gateway.IsValid() && route.Gw.Equal(net.IP(r.Gateway.AsSlice())):
			gateway = true
		}
	}
	return direct && gateway, nil
}

// SetRouting sets the rule and the routes of r, and removes other rules with its
// priority: they are of an address that the rail had before.
func (Kernel) SetRouting(netdev string, r Route) error {
	link, err := byName(netdev)
	if err != nil {
		return err
	}
	rules, err := rulesOf(r)
	if err != nil {
		return err
	}
	have := false
	for _, rule := range rules {
		if !have && sameRule(rule, r) {
			have = true
			continue
		}
		if err := netlink.RuleDel(&rule); err != nil {
			return fmt.Errorf("remove routing rule %d: %w", rule.Priority, err)
		}
	}
	if !have {
		rule := netlink.NewRule()
		rule.Priority, rule.Table, rule.Family = r.Priority(), r.Table, family(r.Address.Addr())
		rule.Src = ipNet(netip.PrefixFrom(r.Address.Addr(), r.Address.Addr().BitLen()))
		if err := netlink.RuleAdd(rule); err != nil {
			return fmt.Errorf("routing rule of table %d: %w", r.Table, err)
		}
	}
	direct := &netlink.Route{LinkIndex: link.Attrs().Index, Table: r.Table, Dst: ipNet(r.Address.Masked()), Src: r.Address.Addr().AsSlice(), Scope: netlink.SCOPE_LINK}
	if err := netlink.RouteReplace(direct); err != nil {
		return fmt.Errorf("route of table %d: %w", r.Table, err)
	}
	if !r.Gateway.IsValid() {
		return nil
	}
	if err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Table: r.Table, Gw: r.Gateway.AsSlice()}); err != nil {
		return fmt.Errorf("gateway of table %d: %w", r.Table, err)
	}
	return nil
}

// SetIPv4 sets a setting of the IPv4 stack: netdev is an interface or "all".
func (Kernel) SetIPv4(netdev, setting, value string) error {
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/"+netdev+"/"+setting, []byte(value), 0o644); err != nil {
		return fmt.Errorf("set %s of %s: %w", setting, netdev, err)
	}
	return nil
}

// rulesOf returns the rules that have the priority of r.
func rulesOf(r Route) ([]netlink.Rule, error) {
	rules, err := netlink.RuleListFiltered(family(r.Address.Addr()), &netlink.Rule{Priority: r.Priority()}, netlink.RT_FILTER_PRIORITY)
	if err != nil {
		return nil, fmt.Errorf("routing rules: %w", err)
	}
	return rules, nil
}

// sameRule reports whether a rule is that of r.
func sameRule(rule netlink.Rule, r Route) bool {
	return rule.Table == r.Table && rule.Src != nil && rule.Src.IP.Equal(net.IP(r.Address.Addr().AsSlice()))
}

// Device asks rdmamap for the RDMA device above a network interface.
func (Kernel) Device(netdev string) string {
	device, err := rdmamap.GetRdmaDeviceForNetdevice(netdev)
	if err != nil {
		return "" // there is none
	}
	return device
}

// AddSoft makes a soft-RoCE device on an interface.
func (Kernel) AddSoft(ctx context.Context, device, netdev string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "modprobe", "rdma_rxe")
	cmd.WaitDelay = time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return errkind.New(errkind.Unsupported, "load rdma_rxe: %w: %s", err, strings.TrimSpace(string(out))).
			Do("Use a kernel with soft RoCE (Debian's cloud kernel has none), or a NIC with RDMA.")
	}
	if err := netlink.RdmaLinkAdd(device, "rxe", netdev); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("soft RDMA device %s on %s: %w", device, netdev, err)
	}
	return nil
}

// Program runs a program of the node and returns its standard output. One that is
// not installed is fs.ErrNotExist.
func Program(ctx context.Context, argv ...string) ([]byte, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return out, nil
}

func byName(netdev string) (netlink.Link, error) {
	link, err := netlink.LinkByName(netdev)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", netdev, err)
	}
	return link, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
