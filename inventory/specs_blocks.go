package inventory

import (
	"github.com/ironrail/ironrail/inventory/language"
)

// topSpecs is the table of all blocks of a site: what docs/language.md says in
// words. The kinds of typed blocks come from their owners.
func topSpecs(kinds Kinds) []language.BlockSpec {
	return append([]language.BlockSpec{
		siteSpec(), controllerSpec(), stateSpec(), networkSpec(), bmcSpec(), loginSpec(), hardwareSpec(), diskLayoutSpec(), hostSpec(), validationSpec(), roleSpec(),
		feedSpec(), rackSpec(), overrideSpec(), cableSpec(), hookSpec(), allowSpec(), movedSpec(),
	}, kindSpecs(kinds)...)
}

func siteSpec() language.BlockSpec {
	s := refer("site", []language.Attr{
		attr("domain", typeDomain),
		attr("time_servers", language.Strings),
		orNumber("max_erase", 1, 0, 1_000_000),
	}, one("geometry", attr("rack_width", typeLength), attr("row_pitch", typeLength), attr("tray_height", typeLength), attr("slack", typeLength)))
	s.Single, s.Repeat, s.SiteOnly = true, false, true
	return s
}

func controllerSpec() language.BlockSpec {
	return refer("controller", []language.Attr{must("address", typeAddress), attr("interface", language.String)})
}

func stateSpec() language.BlockSpec {
	return language.BlockSpec{Type: "state", Labels: []string{"kind"}, Single: true, SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{}}, Kinds: map[string]language.Spec{
		"file": {},
		"etcd": {Attrs: []language.Attr{must("endpoints", language.Strings)}},
	}}
}

func networkSpec() language.BlockSpec {
	return refer("network", []language.Attr{
		must("cidr", typePrefix),
		attr("cidr6", typePrefix),
		attr("gateway", typeAddress),
		attr("dns", language.List(typeAddress)),
		number("vlan", 1, 4094),
		number("mtu", 576, 65_520),
	}, one("dhcp",
		orText("mode", "authoritative", language.OneOf("authoritative", "proxy", "off")),
		attr("pool", typePool),
		attr("relays", language.List(typeAddress)),
		orText("router_advertisement", "off", language.OneOf("off", "empty"))))
}

func bmcSpec() language.BlockSpec {
	return refer("bmc", []language.Attr{
		must("protocol", typeBMCProtocol),
		must("network", language.Ref("network")),
		number("port", 1, 65535),
		number("cipher_suite", 0, 17),
		attr("endpoint", typeEndpoint),
		attr("username", language.String),
		must("password", language.Secret),
		attr("tls", language.Text),
		orText("attach", "dedicated", language.OneOf("dedicated", "shared")),
		number("vlan", 1, 4094),
	}, one("factory", must("username", language.String)))
}

// loginSpec is how ironrail logs in to switches; it stands beside bmc since it is
// the same thing for them.
func loginSpec() language.BlockSpec {
	return refer("login", []language.Attr{
		must("username", language.String),
		attr("password", language.Secret),
		attr("key", language.Secret),
		number("port", 1, 65535),
		orText("host_key", string(HostKeyPinFirstSeen), language.OneOf(string(HostKeyPinFirstSeen), string(HostKeyGiven))),
	})
}

func diskLayoutSpec() language.BlockSpec {
	fs := []language.Attr{attr("size", typeBytes), orText("filesystem", "ext4", language.OneOf("ext4", "xfs"))}
	root := one("root", fs...)
	root.Need = true
	return refer("disk_layout", []language.Attr{
		must("on", language.String),
		number("raid", 0, 10),
		attr("swap", typeBytes),
		attr("preserve", language.Strings),
	}, root, named("data", append(fs, must("mount", language.String))...))
}

func hostSpec() language.BlockSpec {
	return refer("host", []language.Attr{
		orText("timezone", "UTC", language.String),
		attr("locale", language.String),
		attr("kernel_args", language.Strings),
		attr("hold_kernel", language.Bool),
		attr("sysctl", language.StringMap),
		attr("user_data", language.Text),
	}, named("bond", must("members", language.Strings), orText("mode", "802.3ad", language.OneOf("802.3ad", "active-backup", "balance-rr", "balance-xor"))),
		one("accounts", attr("authorized_keys", language.Strings), attr("sudo_groups", language.Strings)))
}

func validationSpec() language.BlockSpec {
	return refer("validation", []language.Attr{attr("burn_in", typeDuration), attr("quorum", typePercent)},
		one("pair", orText("engine", "perftest", language.OneOf("perftest")), attr("size", typeBytes)),
		one("all_reduce",
			attr("engine", language.OneOf("nccl", "rccl", "mpi")),
			must("scope", language.List(language.OneOf("node", "pair", "unit", "all"))),
			attr("sizes", language.List(typeBytes)),
			attr("floor", typePercent)),
		named("limit", attr("at_least", typeQuantity), attr("at_most", typeQuantity)),
		named("allow", must("reason", language.String)))
}

// settings are the attributes that a role gives its nodes and that an override
// may replace.
func settings() []language.Attr {
	return []language.Attr{
		attr("hardware", language.Ref("hardware")),
		attr("bmc", language.Ref("bmc")),
		attr("image", language.Ref("image")),
		attr("disks", language.Ref("disk_layout")),
		attr("host", language.Ref("host")),
		attr("drivers", language.List(language.Ref("driver"))),
		attr("partitions", language.Strings),
		attr("validation", language.Ref("validation")),
		attr("handover", language.Ref("handover")),
		attr("protect", language.Bool),
	}
}

func roleSpec() language.BlockSpec {
	attrs := settings()
	for i := range attrs {
		if attrs[i].Name == "bmc" || attrs[i].Name == "image" {
			attrs[i].Required = true
		}
	}
	return refer("role", append(attrs, attr("after", language.List(language.Ref("role")))),
		named("mount", must("type", language.String), must("source", language.String), attr("options", language.Strings)),
		one("rollout", orNumber("canary", 1, 0, 10_000), orText("batch", "25%", typePercent), orNumber("stop_after", 1, 1, 10_000)))
}

// ownAttrs are the attributes of one node that an override may replace too.
func ownAttrs() []language.Attr {
	return []language.Attr{
		attr("serial", language.String),
		attr("uuid", typeUUID),
		attr("boot_mac", typeMAC),
		attr("bmc_mac", typeMAC),
		attr("factory_password", language.Secret),
		attr("address", typeAddress),
		attr("feeds", typeFeeds),
		attr("domain", language.String),
		attr("install_disk", language.String),
	}
}

// bmcOverride is a node's bmc block: what differs from the profile.
func bmcOverride() language.BlockSpec {
	return one("bmc", attr("address", typeAddress), number("port", 1, 65535), number("cipher_suite", 0, 17), attr("protocol", typeBMCProtocol), attr("endpoint", typeEndpoint),
		attr("username", language.String), attr("password", language.Secret), attr("tls", language.Text))
}

// maxUnits is the tallest rack; positions count in blocks of 64, one more than
// that.
const maxUnits = 63

func rackSpec() language.BlockSpec {
	unitAttr := number("unit", 1, maxUnits)
	pdu := named("pdu", must("feed", language.String),
		language.Attr{Name: "phases", Type: language.Int(1, 3), Required: true},
		must("voltage", typeVolts), must("current", typeAmps), attr("derate", language.Float), number("outlets", 1, 200), orText("wiring", "rotating", language.OneOf("rotating", "banked")))
	pdu.Repeat = true
	pdu.Body.Blocks = []language.BlockSpec{one("control", orText("protocol", "snmp", language.OneOf("snmp")), must("address", typeAddress), attr("model", language.String),
		attr("community", language.Secret), attr("username", language.String), attr("password", language.Secret))}
	sw := named("switch", attr("kind", language.OneOf("ethernet", "infiniband", "nvlink")), attr("model", language.String), unitAttr, orNumber("height", 1, 1, maxUnits),
		number("ports", 1, 2048), attr("os", language.String), attr("address", typeAddress), attr("bmc", typeAddress), attr("power", typeWatts), attr("liquid", typePercent), attr("feeds", typeFeeds),
		attr("airflow", language.OneOf("front-to-back", "back-to-front")), attr("console", language.String), attr("fabric", language.Ref("fabric")),
		attr("login", language.Ref("login")), attr("host_key", language.String),
		attr("weight", typeMass), attr("tier", language.OneOf("leaf", "spine", "core")), number("scalable_unit", 1, 100_000), number("rail", 0, 63), number("plane", 0, 7))
	sw.Repeat = true
	shelf := named("shelf", unitAttr, orNumber("height", 1, 1, maxUnits), must("count", language.Int(1, 100)), must("capacity", typeWatts), attr("redundancy", language.OneOf("n", "n+1", "n+2", "n+n")), attr("weight", typeMass), attr("feeds", typeFeeds))
	shelf.Repeat = true // its count is that of supplies
	node := language.BlockSpec{Type: "node", Labels: []string{"name"}, Repeat: true, Body: language.Spec{
		Attrs: append([]language.Attr{
			must("role", language.Ref("role")), must("unit", language.Int(1, maxUnits)), attr("hardware", language.Ref("hardware")), attr("protect", language.Bool), number("scalable_unit", 1, 100_000),
		}, ownAttrs()...),
		Blocks: []language.BlockSpec{bmcOverride()},
	}}
	return language.BlockSpec{Type: "rack", Labels: []string{"name"}, Repeat: true, Scope: "rack", Body: language.Spec{
		Attrs: []language.Attr{
			orNumber("number", 1, 0, 1_000_000), attr("row", language.String), orNumber("units", 42, 1, maxUnits), attr("max_power", typeWatts),
			number("position", 1, 10_000), number("scalable_unit", 1, 100_000), attr("liquid_cooling", typeWatts),
			attr("cooling", typeWatts), attr("max_weight", typeMass), orText("orientation", "front", language.OneOf("front", "rear")),
		},
		Blocks: []language.BlockSpec{pdu, sw, shelf, node},
	}}
}

func overrideSpec() language.BlockSpec {
	attrs := append([]language.Attr{must("reason", language.String), attr("expires", typeDate), attr("allow", language.List(typeCheck)), number("scalable_unit", 1, 100_000)}, ownAttrs()...)
	for _, a := range settings() {
		if a.Name != "bmc" { // in an override, bmc is the block of a node
			attrs = append(attrs, a)
		}
	}
	return language.BlockSpec{Type: "override", Labels: []string{"node"}, Body: language.Spec{Attrs: attrs, Blocks: []language.BlockSpec{bmcOverride()}}}
}

func cableSpec() language.BlockSpec {
	return language.BlockSpec{Type: "cable", Repeat: true, Body: language.Spec{Attrs: []language.Attr{
		must("from", language.String), must("to", language.String), attr("type", language.OneOf("DAC", "ACC", "AEC", "AOC", "fibre", "copper")), attr("length", typeLength),
	}}}
}

func hookSpec() language.BlockSpec {
	return language.BlockSpec{Type: "hook", Labels: []string{"when", "stage"}, Body: language.Spec{Attrs: []language.Attr{
		must("command", language.Strings), orText("timeout", "1min", typeDuration),
	}}}
}

func feedSpec() language.BlockSpec {
	return language.BlockSpec{Type: "feed", Labels: []string{"name"}, Repeat: true, Body: language.Spec{Attrs: []language.Attr{attr("capacity", typeWatts), attr("derate", language.Float)}}}
}

func movedSpec() language.BlockSpec {
	return language.BlockSpec{Type: "moved", SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{must("from", language.String), must("to", language.String)}}}
}

func allowSpec() language.BlockSpec {
	return language.BlockSpec{Type: "allow", Labels: []string{"check"}, SiteOnly: true, Body: language.Spec{Attrs: []language.Attr{must("reason", language.String), attr("expires", typeDate)}}}
}
