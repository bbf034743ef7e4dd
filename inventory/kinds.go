package inventory

import (
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// Kinds says which kinds of typed blocks there are: by the first label, what each
// kind adds to the attributes that all kinds have. The owner of a kind gives its
// KindSpec; DefaultKinds has those of the language's own kinds.
type Kinds struct {
	Image, Driver, Fabric, Handover map[string]KindSpec
}

// KindSpec is what the owner of a kind tells the loader.
type KindSpec struct {
	Spec language.Spec // attributes and nested blocks beside the common ones

	// Check looks at one block of the kind in its site, whose model is complete;
	// it may be nil. It names its checks, such as "driver.version".
	Check func(*Inventory, Block) diag.List

	// Design computes what follows from a block of kind fabric: switches that
	// stand in no rack, and cables. It may change the part in the topology
	// (Tier, Rail and so on) of the site's switches of this fabric, and nothing
	// else; Load adds the rest to the inventory. It may be nil.
	Design func(*Inventory, *Fabric) ([]*Switch, []*Cable, diag.List)
}

// Check looks at a whole site whose model is complete: every reference resolved,
// every topology computed.
type Check func(*Inventory) diag.List

// kindSpecs makes the typed blocks from their common attributes and the kinds.
func kindSpecs(k Kinds) []language.BlockSpec {
	return []language.BlockSpec{
		typed("image", k.Image, language.Spec{Attrs: []language.Attr{
			attr("release", language.String), attr("kernel", language.String), attr("packages", language.Strings), attr("digest", typeDigest),
		}}),
		typed("driver", k.Driver, language.Spec{Attrs: []language.Attr{attr("version", language.String), attr("packages", language.Strings)}}),
		typed("fabric", k.Fabric, language.Spec{
			Attrs: []language.Attr{
				orNumber("rails", 1, 1, 64),
				attr("link", typeBitRate),
				attr("topology", language.OneOf("rail-optimized", "fat-tree", "top-of-rack", "explicit")),
				number("unit_size", 1, 100_000),
				attr("addressing", language.OneOf("subnet", "point-to-point")),
				attr("cidr", typePrefix),
				number("mtu", 576, 65_520),
				orNumber("planes", 1, 1, 8),
				number("levels", 1, 3),
				attr("oversubscription", language.Float),
			},
			Blocks: []language.BlockSpec{switchModelSpec("switch"), switchModelSpec("spine"), switchModelSpec("core"), named("partition", must("pkey", typePKey), attr("ipoib", language.Bool))},
		}),
		typed("handover", k.Handover, language.Spec{}),
	}
}

func switchModelSpec(name string) language.BlockSpec {
	return one(name, attr("model", language.String), number("ports", 1, 2048), attr("speed", typeBitRate), number("split", 1, 8), attr("os", language.String))
}

func typed(name string, kinds map[string]KindSpec, common language.Spec) language.BlockSpec {
	specs := make(map[string]language.Spec, len(kinds))
	for kind, k := range kinds {
		specs[kind] = k.Spec
	}
	return language.BlockSpec{Type: name, Labels: []string{"kind", "name"}, Repeat: true, Refer: true, Body: common, Kinds: specs}
}

// DefaultKinds are the attributes of the kinds that the language names. Their
// meaning belongs to their owners; a caller may replace any of them.
func DefaultKinds() Kinds {
	release := language.Spec{Attrs: []language.Attr{must("release", language.String)}}
	source := language.Spec{Attrs: []language.Attr{must("source", language.String)}}
	return Kinds{
		Image: map[string]KindSpec{
			"debian": {Spec: release}, "ubuntu": {Spec: release}, "rhel": {Spec: release},
			"oci": {Spec: source}, "raw": {Spec: source}, "installer": {Spec: source},
			"diskless": {Spec: language.Spec{Attrs: []language.Attr{attr("source", language.String)}}},
		},
		Driver:   driverKinds(),
		Fabric:   fabricKinds(),
		Handover: handoverKinds(),
	}
}

func driverKinds() map[string]KindSpec {
	repository := one("repository", must("url", language.String), attr("key", language.Text))
	stack := func(attrs ...language.Attr) KindSpec {
		return KindSpec{Spec: language.Spec{Attrs: append([]language.Attr{must("version", language.String)}, attrs...), Blocks: []language.BlockSpec{repository}}}
	}
	return map[string]KindSpec{
		"cuda":  stack(attr("cuda", language.String), orText("module", "open", language.OneOf("open", "proprietary")), attr("fabric_manager", language.Bool)),
		"rocm":  stack(attr("amdgpu", language.String)),
		"doca":  stack(orText("profile", "doca-ofed", language.OneOf("doca-ofed", "doca-networking", "doca-all", "doca-roce"))),
		"inbox": {Spec: language.Spec{Attrs: []language.Attr{must("packages", language.Strings)}, Blocks: []language.BlockSpec{repository}}},
	}
}

func fabricKinds() map[string]KindSpec {
	subnetManager := one("subnet_manager", attr("run_on", language.List(language.Ref("controller"))), orText("engine", "opensm", language.OneOf("opensm", "ufm")), attr("routing", language.Strings), number("ports", 0, 64))
	lossless := one("lossless", number("priority", 0, 7), number("dscp", 0, 63), number("cnp_dscp", 0, 63), attr("pfc", language.Bool), attr("ecn", language.Bool))
	return map[string]KindSpec{
		"infiniband": {Spec: language.Spec{Blocks: []language.BlockSpec{subnetManager}}},
		"roce":       {Spec: language.Spec{Blocks: []language.BlockSpec{lossless}}},
		"nvlink": {Spec: language.Spec{
			Attrs: []language.Attr{number("domain_size", 1, 1024), attr("imex", language.Bool)},
		}},
	}
}

func handoverKinds() map[string]KindSpec {
	return map[string]KindSpec{
		"slurm": {Spec: language.Spec{Attrs: []language.Attr{
			must("controller", language.String), attr("partition", language.String), orText("topology", "tree", language.OneOf("tree", "block", "flat")), number("block_size", 1, 100_000),
		}}},
		"kubernetes": {Spec: language.Spec{Attrs: []language.Attr{
			must("endpoint", language.String), attr("token", language.Secret), attr("ca", language.Text), attr("labels", language.StringMap), attr("taints", language.Strings),
		}}},
		"ansible": {Spec: language.Spec{Attrs: []language.Attr{must("playbook", language.String), attr("groups", language.Strings), attr("variables", language.StringMap)}}},
		"exec":    {Spec: language.Spec{Attrs: []language.Attr{attr("command", language.Strings), attr("join", language.Strings), attr("resume", language.Strings), attr("drain", language.Strings), orText("timeout", "5min", typeDuration)}}},
	}
}
