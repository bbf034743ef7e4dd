// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"github.com/ironrail/ironrail/inventory/language"
)

// topSpecs is the table of all blocks of a site: what docs/language.md says in
// words. The kinds of typed blocks come from their owners.
func topSpecs(kinds Kinds) []language.BlockSpec {
	return append([]language.BlockSpec{
		siteSpec(), controllerSpec(), stateSpec(), networkSpec(), bmcSpec(), loginSpec(), hardwareSpec(), diskLayoutSpec(), hostSpec(), validationSpec(), roleSpec(),
		feedSpec(), rackSpec(), overrideSpec(), cableSpec(), hookSpec(), notifySpec(), allowSpec(), movedSpec(),
	}, kindSpecs(kinds)...)
}

func siteSpec() language.BlockSpec {
	s := referableBlock("site", []language.Attr{
		optionalAttr("domain", typeDomain),
		optionalAttr("time_servers", language.Strings),
		orNumber("max_erase", 1, 0, 1_000_000),
	}, singleBlock("geometry", optionalAttr("rack_width", typeLength), optionalAttr("row_pitch", typeLength), optionalAttr("tray_height", typeLength), optionalAttr("slack", typeLength)), pricesSpec())
	s.Single, s.Repeat, s.SiteOnly = true, false, true
	return s
}

func pricesSpec() language.BlockSpec {
	s := singleBlock("prices", requiredAttr("currency", language.String), optionalAttr("kwh", language.Float), optionalAttr("pue", language.Float))
	s.Body.Blocks = []language.BlockSpec{namedBlock("part", requiredAttr("each", language.Float))}
	return s
}

func controllerSpec() language.BlockSpec {
	return referableBlock("controller", []language.Attr{requiredAttr("address", typeAddress), optionalAttr("interface", language.String)})
}

func stateSpec() language.BlockSpec {
	return language.BlockSpec{Type: "state", Labels: []string{"kind"}, Single: true, SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{}}, Kinds: map[string]language.Spec{
		"file": {},
		"etcd": {Attrs: []language.Attr{
			requiredAttr("endpoints", language.List(typeMember)),
			requiredAttr("prefix", typeKeyPrefix),
			requiredAttr("authority", typePEMFile),
			requiredAttr("certificate", typePEMFile),
			requiredAttr("key", typePEMFile),
		}},
	}}
}

func networkSpec() language.BlockSpec {
	return referableBlock("network", []language.Attr{
		requiredAttr("cidr", typePrefix),
		optionalAttr("cidr6", typePrefix),
		optionalAttr("gateway", typeAddress),
		optionalAttr("gateway6", typeAddress),
		optionalAttr("dns", language.List(typeAddress)),
		numberAttr("vlan", 1, 4094),
		numberAttr("mtu", 576, 65_520),
	}, singleBlock("dhcp",
		orText("mode", "authoritative", language.OneOf("authoritative", "proxy", "off")),
		optionalAttr("pool", typePool),
		optionalAttr("relays", language.List(typeAddress)),
		orText("router_advertisement", "off", language.OneOf("off", "empty"))))
}

func bmcSpec() language.BlockSpec {
	return referableBlock("bmc", []language.Attr{
		requiredAttr("protocol", typeBMCProtocol),
		requiredAttr("network", language.Ref("network")),
		numberAttr("port", 1, 65535),
		numberAttr("cipher_suite", 0, 17),
		optionalAttr("endpoint", typeEndpoint),
		optionalAttr("username", language.String),
		requiredAttr("password", language.Secret),
		optionalAttr("tls", language.Text),
		orText("attach", "dedicated", language.OneOf("dedicated", "shared")),
		numberAttr("vlan", 1, 4094),
	}, singleBlock("factory", requiredAttr("username", language.String)))
}

// loginSpec is how ironrail logs in to switches and to consoles; it stands beside bmc since it is
// the same thing for them.
func loginSpec() language.BlockSpec {
	return referableBlock("login", []language.Attr{
		requiredAttr("username", language.String),
		optionalAttr("password", language.Secret),
		optionalAttr("key", language.Secret),
		numberAttr("port", 1, 65535),
		orText("host_key", string(HostKeyPinFirstSeen), language.OneOf(string(HostKeyPinFirstSeen), string(HostKeyGiven))),
	})
}

func diskLayoutSpec() language.BlockSpec {
	fs := []language.Attr{optionalAttr("size", typeBytes), orText("filesystem", "ext4", language.OneOf("ext4", "xfs")), optionalAttr("volume_group", language.String)}
	root := singleBlock("root", fs...)
	root.Need = true
	return referableBlock("disk_layout", []language.Attr{
		requiredAttr("on", language.String),
		numberAttr("raid", 0, 10),
		optionalAttr("swap", typeBytes),
		optionalAttr("preserve", language.Strings),
	}, root, namedBlock("volume_group", optionalAttr("size", typeBytes), optionalAttr("on", language.String)), namedBlock("data", append(fs, requiredAttr("mount", language.String), optionalAttr("on", language.String), optionalAttr("encryption", language.OneOf(EncryptionTPM2)))...))
}

func hostSpec() language.BlockSpec {
	return referableBlock("host", []language.Attr{
		orText("timezone", "UTC", language.String),
		optionalAttr("locale", language.String),
		optionalAttr("kernel_args", language.Strings),
		optionalAttr("hold_kernel", language.Bool),
		optionalAttr("sysctl", language.StringMap),
		optionalAttr("user_data", language.Text),
	}, namedBlock("bond", requiredAttr("members", language.Strings), orText("mode", "802.3ad", language.OneOf("802.3ad", "active-backup", "balance-rr", "balance-xor"))),
		singleBlock("accounts", optionalAttr("authorized_keys", language.Strings), optionalAttr("sudo_groups", language.Strings)))
}

func validationSpec() language.BlockSpec {
	return referableBlock("validation", []language.Attr{optionalAttr("burn_in", typeDuration), optionalAttr("quorum", typePercent), optionalAttr("provisional", language.Bool)},
		singleBlock("pair", orText("engine", "perftest", language.OneOf("perftest")), optionalAttr("size", typeBytes)),
		singleBlock("all_reduce",
			optionalAttr("engine", language.OneOf("nccl", "rccl", "mpi")),
			requiredAttr("scope", language.List(language.OneOf("node", "pair", "domain", "unit", "all"))),
			optionalAttr("sizes", language.List(typeBytes)),
			optionalAttr("floor", typePercent),
			optionalAttr("operations", language.List(language.OneOf(Operations...)))),
		namedBlock("limit", optionalAttr("at_least", typeQuantity), optionalAttr("at_most", typeQuantity)),
		namedBlock("allow", requiredAttr("reason", language.String)))
}

// settingAttrs returns the attributes that a role gives its nodes and that an override
// may replace.
func settingAttrs() []language.Attr {
	return []language.Attr{
		optionalAttr("hardware", language.Ref("hardware")),
		optionalAttr("bmc", language.Ref("bmc")),
		optionalAttr("image", language.Ref("image")),
		optionalAttr("disks", language.Ref("disk_layout")),
		optionalAttr("host", language.Ref("host")),
		optionalAttr("drivers", language.List(language.Ref("driver"))),
		optionalAttr("partitions", language.Strings),
		optionalAttr("validation", language.Ref("validation")),
		optionalAttr("handover", language.Ref("handover")),
		optionalAttr("protect", language.Bool),
	}
}

func roleSpec() language.BlockSpec {
	attrs := settingAttrs()
	for i := range attrs {
		if attrs[i].Name == "bmc" || attrs[i].Name == "image" {
			attrs[i].Required = true
		}
	}
	return referableBlock("role", append(attrs, optionalAttr("after", language.List(language.Ref("role")))),
		namedBlock("mount", requiredAttr("type", language.String), requiredAttr("source", language.String), optionalAttr("options", language.Strings)),
		singleBlock("rollout", orNumber("canary", 1, 0, 10_000), orText("batch", "25%", typePercent), orNumber("stop_after", 1, 1, 10_000)))
}

// ownAttrs are the attributes of one node that an override may replace too.
func ownAttrs() []language.Attr {
	return []language.Attr{
		optionalAttr("serial", language.String),
		optionalAttr("uuid", typeUUID),
		optionalAttr("boot_mac", typeMAC),
		optionalAttr("bmc_mac", typeMAC),
		optionalAttr("factory_password", language.Secret),
		optionalAttr("address", typeAddress),
		optionalAttr("feeds", typeFeeds),
		optionalAttr("domain", language.String),
		optionalAttr("install_disk", language.String),
	}
}

// bmcOverride is a node's bmc block: what differs from the profile.
func bmcOverride() language.BlockSpec {
	return singleBlock("bmc", optionalAttr("address", typeAddress), numberAttr("port", 1, 65535), numberAttr("cipher_suite", 0, 17), optionalAttr("protocol", typeBMCProtocol), optionalAttr("endpoint", typeEndpoint),
		optionalAttr("username", language.String), optionalAttr("password", language.Secret), optionalAttr("tls", language.Text))
}

// consoleSpec is where the serial console of a node is, if not at its BMC.
func consoleSpec() language.BlockSpec {
	return singleBlock("console", requiredAttr("address", typeAddress), numberAttr("port", 1, 65535), requiredAttr("login", language.Ref("login")),
		optionalAttr("username", language.String), requiredAttr("host_key", typeHostKey))
}

// maxUnits is the tallest rack; positions count in blocks of 64, one more than
// that.
const maxUnits = 63

func rackSpec() language.BlockSpec {
	unitAttr := numberAttr("unit", 1, maxUnits)
	pdu := namedBlock("pdu", requiredAttr("feed", language.String),
		language.Attr{Name: "phases", Type: language.Int(1, 3), Required: true},
		requiredAttr("voltage", typeVolts), requiredAttr("current", typeAmps), optionalAttr("derate", language.Float), numberAttr("outlets", 1, 200), orText("wiring", "rotating", language.OneOf("rotating", "banked")))
	pdu.Repeat = true
	pdu.Body.Blocks = []language.BlockSpec{singleBlock("control", orText("protocol", "snmp", language.OneOf("snmp")), requiredAttr("address", typeAddress), optionalAttr("model", language.String),
		optionalAttr("community", language.Secret), optionalAttr("username", language.String), optionalAttr("password", language.Secret))}
	sw := namedBlock("switch", optionalAttr("kind", language.OneOf("ethernet", "infiniband", "nvlink")), optionalAttr("model", language.String), unitAttr, orNumber("height", 1, 1, maxUnits),
		numberAttr("ports", 1, 2048), optionalAttr("os", language.String), optionalAttr("address", typeAddress), optionalAttr("bmc", typeAddress), optionalAttr("power", typeWatts), optionalAttr("liquid", typePercent), optionalAttr("feeds", typeFeeds),
		optionalAttr("airflow", language.OneOf("front-to-back", "back-to-front")), optionalAttr("console", language.String), optionalAttr("fabric", language.Ref("fabric")),
		optionalAttr("login", language.Ref("login")), optionalAttr("host_key", language.String),
		optionalAttr("weight", typeMass), optionalAttr("tier", language.OneOf("leaf", "spine", "core")), numberAttr("scalable_unit", 1, 100_000), numberAttr("rail", 0, 63), numberAttr("plane", 0, 7))
	sw.Repeat = true
	shelf := namedBlock("shelf", unitAttr, orNumber("height", 1, 1, maxUnits), requiredAttr("count", language.Int(1, 100)), requiredAttr("capacity", typeWatts), optionalAttr("redundancy", language.OneOf("n", "n+1", "n+2", "n+n")), optionalAttr("weight", typeMass), optionalAttr("feeds", typeFeeds))
	shelf.Repeat = true // its count is that of supplies
	shelf.Body.Blocks = []language.BlockSpec{singleBlock("control", orText("protocol", "redfish", language.OneOf("redfish")), requiredAttr("address", typeAddress), requiredAttr("username", language.String),
		requiredAttr("password", language.Secret), optionalAttr("tls", language.Text))}
	node := language.BlockSpec{Type: "node", Labels: []string{"name"}, Repeat: true, Body: language.Spec{
		Attrs: append([]language.Attr{
			requiredAttr("role", language.Ref("role")), requiredAttr("unit", language.Int(1, maxUnits)), optionalAttr("hardware", language.Ref("hardware")), optionalAttr("protect", language.Bool), numberAttr("scalable_unit", 1, 100_000),
		}, ownAttrs()...),
		Blocks: []language.BlockSpec{bmcOverride(), consoleSpec()},
	}}
	return language.BlockSpec{Type: "rack", Labels: []string{"name"}, Repeat: true, Scope: "rack", Body: language.Spec{
		Attrs: []language.Attr{
			orNumber("number", 1, 0, 1_000_000), optionalAttr("row", language.String), orNumber("units", 42, 1, maxUnits), optionalAttr("max_power", typeWatts),
			numberAttr("position", 1, 10_000), numberAttr("scalable_unit", 1, 100_000), optionalAttr("liquid_cooling", typeWatts),
			optionalAttr("cooling", typeWatts), optionalAttr("max_weight", typeMass), orText("orientation", "front", language.OneOf("front", "rear")),
		},
		Blocks: []language.BlockSpec{pdu, sw, shelf, node},
	}}
}

func overrideSpec() language.BlockSpec {
	attrs := append([]language.Attr{requiredAttr("reason", language.String), optionalAttr("expires", typeDate), optionalAttr("allow", language.List(typeCheck)), numberAttr("scalable_unit", 1, 100_000)}, ownAttrs()...)
	for _, a := range settingAttrs() {
		if a.Name != "bmc" { // in an override, bmc is the block of a node
			attrs = append(attrs, a)
		}
	}
	return language.BlockSpec{Type: "override", Labels: []string{"node"}, Body: language.Spec{Attrs: attrs, Blocks: []language.BlockSpec{bmcOverride(), consoleSpec()}}}
}

func cableSpec() language.BlockSpec {
	return language.BlockSpec{Type: "cable", Repeat: true, Body: language.Spec{Attrs: []language.Attr{
		requiredAttr("from", language.String), requiredAttr("to", language.String), optionalAttr("type", language.OneOf("DAC", "ACC", "AEC", "AOC", "fibre", "copper")), optionalAttr("length", typeLength),
	}}}
}

func hookSpec() language.BlockSpec {
	return language.BlockSpec{Type: "hook", Labels: []string{"when", "stage"}, Body: language.Spec{Attrs: []language.Attr{
		requiredAttr("command", language.Strings), orText("timeout", "1min", typeDuration),
	}}}
}

// notifySpec is who hears of findings, holds and ends of runs.
func notifySpec() language.BlockSpec {
	return language.BlockSpec{Type: "notify", Labels: []string{"kind", "name"}, Repeat: true, SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{
		requiredAttr("url", typeTarget),
		optionalAttr("token", language.Secret),
		optionalAttr("ca", language.Text),
		optionalAttr("on", language.List(language.OneOf(NotifyOn...))),
		orText("timeout", "10s", typeDuration), // of one try
	}, Blocks: []language.BlockSpec{namedBlock("header", requiredAttr("value", language.Secret))}}, Kinds: map[string]language.Spec{
		"webhook":      {},
		"alertmanager": {Attrs: []language.Attr{orText("lasts", "24h", typeDuration)}}, // of the alert of a finding
	}}
}

func feedSpec() language.BlockSpec {
	return language.BlockSpec{Type: "feed", Labels: []string{"name"}, Repeat: true, Body: language.Spec{Attrs: []language.Attr{optionalAttr("capacity", typeWatts), optionalAttr("derate", language.Float)}}}
}

func movedSpec() language.BlockSpec {
	return language.BlockSpec{Type: "moved", SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{requiredAttr("from", language.String), requiredAttr("to", language.String)}}}
}

func allowSpec() language.BlockSpec {
	return language.BlockSpec{Type: "allow", Labels: []string{"check"}, SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{requiredAttr("reason", language.String), optionalAttr("expires", typeDate)}}}
}
