// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// block is what all typed blocks have.
func (l *loader) block(b *language.Body) Block {
	return Block{Kind: b.Kind, Name: b.Name, Body: b.Syntax, Ctx: b.Ctx, Value: b.Value, Decl: b.Decl, Ranges: rangesOf(b)}
}

// rangesOf are the places of the attributes and nested blocks that were given.
func rangesOf(b *language.Body) map[string]hcl.Range {
	ranges := map[string]hcl.Range{}
	for _, name := range b.AttrNames() {
		ranges[name] = b.Range(name)
	}
	return ranges
}

func (l *loader) image(b *language.Body) *Image {
	i := &Image{
		Block: l.block(b), Arch: Arch(language.Get[string](b, "arch")), Release: language.Get[string](b, "release"), Kernel: language.Get[string](b, "kernel"), Packages: language.GetList[string](b, "packages"),
		Source: language.Get[string](b, "source"), Checksum: language.Get[string](b, "checksum"), OS: language.Get[string](b, "os"), Digest: language.Get[string](b, "digest"),
		Registry: Registry{CA: language.Get[string](b, "ca"), PlainHTTP: language.Get[bool](b, "plain_http"), Username: language.Get[string](b, "username"), Password: language.Get[secret.Ref](b, "password")},
		Vendor:   VendorSignature{List: language.Get[string](b, "checksum_list"), Signature: language.Get[string](b, "signature"), Key: language.Get[string](b, "signing_key")},

		CryptoPolicy: language.Get[string](b, "crypto_policy"),
	}
	for _, r := range b.Blocks("repository") {
		url, key := language.Get[string](r, "url"), language.Get[string](r, "key")
		if r.Name == "" { // of kind ubuntu, which has one
			i.Archive = PackageArchive{URL: url, Key: key, Components: language.GetList[string](r, "components")}
			continue
		}
		i.Repositories = append(i.Repositories, PackageRepository{Name: r.Name, URL: url, Key: key})
	}
	slices.SortFunc(i.Repositories, func(a, b PackageRepository) int { return strings.Compare(a.Name, b.Name) })
	return i
}

func (l *loader) driver(b *language.Body) *Driver {
	return &Driver{Block: l.block(b), Version: language.Get[string](b, "version"), Packages: language.GetList[string](b, "packages")}
}

func (l *loader) handover(b *language.Body) *Handover { return &Handover{Block: l.block(b)} }

// exports gives each node the handovers that list it beside its own.
func (l *loader) exports(kinds Kinds) {
	for _, h := range l.inv.Handovers {
		if h.Export = kinds.Handover[h.Kind].Export; !h.Export {
			continue
		}
		roles := readRefs(l.bodies[h], "roles", l.roles)
		for _, n := range l.inv.Nodes {
			if n.Handover != h && (len(roles) == 0 || n.Role != nil && slices.Contains(roles, n.Role)) {
				n.Exports = append(n.Exports, h)
			}
		}
	}
}

func (l *loader) fabric(b *language.Body) *Fabric {
	f := &Fabric{
		Block: l.block(b), Rails: language.Get[int](b, "rails"), Link: language.Get[unit.BitRate](b, "link"), Topology: language.Get[string](b, "topology"),
		UnitSize: language.Get[int](b, "unit_size"), Addressing: language.Get[string](b, "addressing"), CIDR: language.Get[netip.Prefix](b, "cidr"), MTU: language.Get[int](b, "mtu"),
	}
	l.parts(b, "planes")
	for _, name := range []string{"switch", "spine", "core"} {
		l.parts(b.Block(name), "split")
	}
	f.Login = readRef(b, "login", l.logins)
	f.Planes, f.Levels, f.Oversubscription = language.Get[int](b, "planes"), language.Get[int](b, "levels"), 1
	if b.Given("oversubscription") {
		if f.Oversubscription = language.Get[float64](b, "oversubscription"); f.Oversubscription < 1 {
			l.diags.Add("language.value", b.Range("oversubscription"), "Wrong value of oversubscription", "oversubscription is the sum of the links down from a leaf by the sum of those up: 1 or more.").In(b.Decl)
		}
	}
	f.Switch, f.Spine, f.Core = switchModel(b.Block("switch")), switchModel(b.Block("spine")), switchModel(b.Block("core"))
	byKey := map[uint16]FabricPartition{}
	for _, p := range b.Blocks("partition") {
		part := FabricPartition{Name: p.Name, PKey: language.Get[uint16](p, "pkey"), IPoIB: language.Get[bool](p, "ipoib"), Decl: p.Range("pkey")}
		if first, dup := byKey[part.PKey]; dup && part.PKey != 0 {
			l.diags.Add("pkey.duplicate", part.Decl, "P_Key used twice",
				fmt.Sprintf("P_Key %#04x belongs to partition %q of fabric %q already. Give %q another one.", part.PKey, first.Name, f.Name, part.Name)).Also("used first here", first.Decl).In(p.Decl)
		} else {
			byKey[part.PKey] = part
		}
		part.Decl = p.Decl
		f.Partitions = append(f.Partitions, part)
	}
	slices.SortStableFunc(f.Partitions, func(a, b FabricPartition) int { return strings.Compare(a.Name, b.Name) })
	return f
}

// parts reports a port that is divided as none is built: a port has 8, 4, 2 lanes
// or one (QSFP-DD and OSFP multi-source agreements), and links take equal shares.
func (l *loader) parts(b *language.Body, name string) {
	if n := language.Get[int](b, name); n > 0 && n&(n-1) != 0 {
		l.diags.Add("language.value", b.Range(name), "Wrong value of "+name, fmt.Sprintf("A port is divided into 2, 4 or 8 links, not into %d.", n)).In(b.Decl)
	}
}

// mountPath reports a place in the tree of a node's files that is not written from its
// root.
func (l *loader) mountPath(b *language.Body, name string, at hcl.Range, what string) {
	if path.IsAbs(name) && path.Clean(name) == name && !strings.ContainsAny(name, " \t\n") {
		return
	}
	l.diags.Add("language.value", at, "Wrong value of "+what, fmt.Sprintf("%q is no path to mount at: it is written from the root, without spaces, .. and a slash at the end, such as \"/scratch\".", name)).In(b.Decl)
}

func switchModel(b *language.Body) SwitchModel {
	if b == nil {
		return SwitchModel{}
	}
	return SwitchModel{
		Model: language.Get[string](b, "model"), OS: language.Get[string](b, "os"), Ports: language.Get[int](b, "ports"), Speed: language.Get[unit.BitRate](b, "speed"),
		Split: language.Get[int](b, "split"), Decl: b.Decl,
	}
}

func (l *loader) diskLayout(b *language.Body) *DiskLayout {
	d := &DiskLayout{
		Name: b.Name, On: language.Get[string](b, "on"), RAID: -1, Swap: language.Get[unit.Bytes](b, "swap"), Preserve: language.GetList[string](b, "preserve"), Decl: b.Decl,
	}
	if b.Given("raid") {
		d.RAID = language.Get[int](b, "raid")
	}
	for _, g := range b.Blocks("volume_group") {
		d.Groups = append(d.Groups, VolumeGroup{Name: g.Name, Size: language.Get[unit.Bytes](g, "size"), On: language.Get[string](g, "on"), Decl: g.Decl})
	}
	if r := b.Block("root"); r != nil {
		d.Root = FileSystem{Name: "root", Size: language.Get[unit.Bytes](r, "size"), Filesystem: language.Get[string](r, "filesystem"), Mount: "/", Group: language.Get[string](r, "volume_group"), Decl: r.Decl}
	}
	for _, f := range b.Blocks("data") {
		if f.Right("mount") {
			l.mountPath(f, language.Get[string](f, "mount"), f.Range("mount"), "mount")
		}
		is := FileSystem{Name: f.Name, Size: language.Get[unit.Bytes](f, "size"), Filesystem: language.Get[string](f, "filesystem"), Mount: language.Get[string](f, "mount"), On: language.Get[string](f, "on"), Group: language.Get[string](f, "volume_group"), Encryption: language.Get[string](f, "encryption"), Decl: f.Decl}
		if g, ok := d.Group(is.Group); ok && is.On == "" {
			is.On = g.On
		}
		d.Data = append(d.Data, is)
	}
	for i, p := range d.Preserve {
		if rest, ok := strings.CutPrefix(p, "label:"); !ok || rest == "" {
			l.diags.Add("language.value", b.ElementRange("preserve", i), "Wrong value of preserve", fmt.Sprintf(`%q does not say what to keep; write "label:NAME" with the label of a file system.`, p)).In(b.Decl)
		}
	}
	l.checkVolumes(d, b)
	l.checkBelowEncrypted(d, b)
	l.checkVolumeGroups(d, b)
	return d
}

func (l *loader) host(b *language.Body) *HostSettings {
	h := &HostSettings{
		Name: b.Name, Timezone: language.Get[string](b, "timezone"), Locale: language.Get[string](b, "locale"), KernelArgs: language.GetList[string](b, "kernel_args"),
		HoldKernel: language.Get[bool](b, "hold_kernel"), Sysctl: language.Get[map[string]string](b, "sysctl"), UserData: language.Get[string](b, "user_data"), Decl: b.Decl, Ranges: rangesOf(b),
	}
	for _, n := range b.Blocks("bond") {
		h.Bonds = append(h.Bonds, Bond{Name: n.Name, Mode: language.Get[string](n, "mode"), Members: language.GetList[string](n, "members"), Decl: n.Decl})
	}
	if a := b.Block("accounts"); a != nil {
		h.Accounts = Accounts{SudoGroups: language.GetList[string](a, "sudo_groups"), Decl: a.Decl, Ranges: rangesOf(a)}
		for _, k := range language.GetList[string](a, "authorized_keys") {
			h.Accounts.AuthorizedKeys = append(h.Accounts.AuthorizedKeys, strings.TrimSpace(k))
		}
		l.checkKeys(a)
		l.checkGroups(a)
	}
	l.checkHost(b, h)
	return h
}

func (l *loader) validation(b *language.Body) *Validation {
	v := &Validation{Name: b.Name, BurnIn: language.Get[unit.Duration](b, "burn_in"), Quorum: language.Get[unit.Percent](b, "quorum"), Provisional: language.Get[bool](b, "provisional"), Decl: b.Decl, Ranges: rangesOf(b)}
	if p := b.Block("pair"); p != nil {
		v.Pair = &PairTest{Engine: language.Get[string](p, "engine"), Size: language.Get[unit.Bytes](p, "size"), Decl: p.Decl, Ranges: rangesOf(p)}
	}
	if a := b.Block("all_reduce"); a != nil {
		v.AllReduce = &CollectiveTest{
			Engine: language.Get[string](a, "engine"), Scope: language.GetList[string](a, "scope"), Sizes: language.GetList[unit.Bytes](a, "sizes"), Floor: language.Get[unit.Percent](a, "floor"), Decl: a.Decl,
			Ranges: rangesOf(a),
		}
		slices.Sort(v.AllReduce.Sizes)
		operations := language.GetList[string](a, "operations")
		slices.Sort(operations)
		v.AllReduce.Operations = slices.Compact(operations)
	}
	for _, m := range b.Blocks("limit") {
		v.Limits = append(v.Limits, l.limit(m))
	}
	slices.SortStableFunc(v.Limits, func(a, b MeasureLimit) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range b.Blocks("allow") {
		v.Allowed = append(v.Allowed, AllowedGate{Gate: a.Name, Reason: language.Get[string](a, "reason"), Decl: a.Decl})
	}
	slices.SortStableFunc(v.Allowed, func(a, b AllowedGate) int { return strings.Compare(a.Gate, b.Gate) })
	return v
}

// limit reads a limit block: a floor, a ceiling or both, of one dimension.
func (l *loader) limit(b *language.Body) MeasureLimit {
	m := MeasureLimit{Name: b.Name, Decl: b.Decl, Ranges: rangesOf(b)}
	if b.Given("at_least") {
		q := language.Get[unit.Quantity](b, "at_least")
		m.AtLeast = &q
	}
	if b.Given("at_most") {
		q := language.Get[unit.Quantity](b, "at_most")
		m.AtMost = &q
	}
	switch {
	case m.AtLeast == nil && m.AtMost == nil:
		l.diags.Add("language.required", b.Decl, "Limit without a value", "A limit needs at_least, at_most or both.")
	case m.AtLeast != nil && m.AtMost != nil && (m.AtLeast.Dimension != m.AtMost.Dimension || m.AtLeast.Value > m.AtMost.Value):
		l.diags.Add("limit.range", b.Range("at_most"), "Limits that exclude each other", fmt.Sprintf("Nothing is at least %s and at most %s.", m.AtLeast, m.AtMost)).In(b.Decl)
	}
	return m
}
