// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"slices"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// Kinds says which kinds of typed blocks there are: by the first label, what each
// kind adds to the attributes that all kinds have. The owner of a kind gives its
// KindSpec; DefaultKinds has those of the language's own kinds.
type Kinds struct {
	Image, Driver, Fabric, Handover map[string]KindSpec
}

// KindSpec is what the owner of a kind tells the loader: which attributes a block
// of the kind may have, what follows from it, and what may be wrong with it. Load
// uses them in the order Spec, Design, Check.
type KindSpec struct {
	Spec language.Spec // attributes and nested blocks beside the common ones

	// Export is for a kind of handover that only lists nodes: it has those of its
	// attribute `roles`, by default all of the site, whatever scheduler they go to, and
	// those whose role names it.
	Export bool

	// Design computes what follows from a block of kind fabric: switches that
	// stand in no rack, and cables. It may change the part in the topology
	// (Tier, Rail and so on) of the site's switches of this fabric, and nothing
	// else; Load adds the rest to the inventory. It may be nil.
	Design func(*Inventory, *Fabric) ([]*Switch, []*Cable, diag.List)

	// Check looks at one block of the kind in its site, whose model is complete;
	// it may be nil. It names its checks, such as "driver.version".
	Check func(*Inventory, Block) diag.List
}

// Check looks at a whole site whose model is complete: every reference resolved,
// every topology computed.
type Check func(*Inventory) diag.List

// DefaultKinds are the attributes of the kinds that the language names. Their
// meaning belongs to their owners; a caller may replace any of them.
func DefaultKinds() Kinds {
	return Kinds{Image: imageKinds(), Driver: driverKinds(), Fabric: fabricKinds(), Handover: handoverKinds()}
}

func imageKinds() map[string]KindSpec {
	release := KindSpec{Spec: language.Spec{Attrs: []language.Attr{requiredAttr("release", language.String)}}}
	source := KindSpec{Spec: language.Spec{Attrs: []language.Attr{requiredAttr("source", language.String)}}}
	oci := KindSpec{Spec: language.Spec{Attrs: []language.Attr{
		requiredAttr("source", language.String),
		optionalAttr("os", language.OneOf("debian", "ubuntu")),
		optionalAttr("ca", language.Text), // of the registry
		optionalAttr("plain_http", language.Bool),
		optionalAttr("username", language.String),
		optionalAttr("password", language.Secret),
	}}}
	raw := KindSpec{Spec: language.Spec{Attrs: []language.Attr{
		requiredAttr("source", language.String),
		requiredAttr("checksum", typeDigest), // of the file
		optionalAttr("checksum_list", language.String),
		optionalAttr("signature", language.String), // of the list, else of the file
		optionalAttr("signing_key", language.Text),
		optionalAttr("os", language.OneOf("debian", "ubuntu", "rhel")),
	}}}
	ubuntu := KindSpec{Spec: language.Spec{Attrs: release.Spec.Attrs, Blocks: []language.BlockSpec{
		singleBlock("repository", requiredAttr("url", language.String), requiredAttr("key", language.Text), optionalAttr("components", language.Strings)),
	}}}
	rhel := KindSpec{Spec: language.Spec{Attrs: append(slices.Clone(release.Spec.Attrs), optionalAttr("crypto_policy", language.String)), Blocks: []language.BlockSpec{
		namedBlock("repository", requiredAttr("url", language.String), requiredAttr("key", language.Text)),
	}}}
	system := append(slices.Clone(rhel.Spec.Attrs), requiredAttr("os", language.OneOf("debian", "ubuntu", "rhel")))
	diskless := KindSpec{Spec: language.Spec{Attrs: system, Blocks: ubuntu.Spec.Blocks, Labelled: &language.Spec{Attrs: system, Blocks: rhel.Spec.Blocks}}}
	return map[string]KindSpec{
		"debian":     release,
		"ubuntu":     ubuntu,
		"rhel":       rhel,
		"oci":        oci,
		"raw":        raw,
		"installer":  source,
		KindDiskless: diskless,
	}
}

func driverKinds() map[string]KindSpec {
	repository := singleBlock("repository", requiredAttr("url", language.String), optionalAttr("key", language.Text), optionalAttr("suite", language.String), optionalAttr("components", language.Strings))
	kind := func(attrs ...language.Attr) KindSpec {
		return KindSpec{Spec: language.Spec{Attrs: attrs, Blocks: []language.BlockSpec{repository}}}
	}
	archive := func(program string) language.BlockSpec { // of sources
		return singleBlock(program, requiredAttr("source", language.String), optionalAttr("checksum", typeDigest))
	}
	return map[string]KindSpec{
		"cuda": kind(
			requiredAttr("version", language.String),
			optionalAttr("cuda", language.String), // the toolkit
			orText("module", "open", language.OneOf("open", "proprietary")),
			optionalAttr("fabric_manager", language.Bool),
			optionalAttr("precompiled", language.Bool), // modules of the vendor's, for one kernel
		),
		"rocm": kind(
			requiredAttr("version", language.String),
			optionalAttr("amdgpu", language.String), // the kernel driver, where it is not that of version
		),
		"doca": kind(
			requiredAttr("version", language.String),
			orText("profile", "doca-ofed", language.OneOf("doca-ofed", "doca-networking", "doca-all", "doca-roce")),
		),
		"inbox": kind(
			requiredAttr("packages", language.Strings),
		),
		"tools": {Spec: language.Spec{Blocks: []language.BlockSpec{archive("nccl_tests"), archive("rccl_tests"), archive("nvbandwidth"), archive("stream"), singleBlock("cuda_checksum"), singleBlock("rocm_checksum")}}},
	}
}

func fabricKinds() map[string]KindSpec {
	subnetManager := singleBlock("subnet_manager",
		optionalAttr("run_on", language.List(language.Ref("controller"))),
		orText("engine", "opensm", language.OneOf("opensm", "ufm")),
		optionalAttr("routing", language.Strings),
		numberAttr("ports", 0, 64), // of leaves, that its hosts take
	)
	lossless := singleBlock("lossless",
		numberAttr("priority", 0, 7),
		numberAttr("dscp", 0, 63),
		numberAttr("cnp_dscp", 0, 63), // of congestion notification packets
		optionalAttr("pfc", language.Bool),
		optionalAttr("ecn", language.Bool),
	)
	return map[string]KindSpec{
		"infiniband": {Spec: language.Spec{Blocks: []language.BlockSpec{subnetManager}}},
		"roce":       {Spec: language.Spec{Blocks: []language.BlockSpec{lossless}}},
		"nvlink": {Spec: language.Spec{Attrs: []language.Attr{
			numberAttr("domain_size", 1, 1024), // nodes
			optionalAttr("imex", language.Bool),
		}}},
	}
}

func handoverKinds() map[string]KindSpec {
	kind := func(attrs ...language.Attr) KindSpec { return KindSpec{Spec: language.Spec{Attrs: attrs}} }
	export := func(attrs ...language.Attr) KindSpec {
		attrs = append(attrs, optionalAttr("roles", language.List(language.Ref("role"))))
		return KindSpec{Spec: language.Spec{Attrs: attrs}, Export: true}
	}
	return map[string]KindSpec{
		"slurm": kind(
			requiredAttr("controller", language.String),
			optionalAttr("partition", language.String),
			optionalAttr("default", language.Bool),
			orText("topology", "tree", language.OneOf("tree", "block", "flat")),
			numberAttr("block_size", 1, 100_000),     // nodes
			optionalAttr("version", language.String), // of Slurm, where slurmctld cannot be asked
			orText("gres", "explicit", language.OneOf("explicit", "autodetect", "none")),
		),
		"kubernetes": kind(
			requiredAttr("endpoint", language.String),
			optionalAttr("token", language.Secret),
			optionalAttr("ca", language.Text),
			optionalAttr("labels", language.StringMap),
			optionalAttr("taints", language.Strings),
			orText("timeout", "15min", typeDuration), // of a join, and of a drain
		),
		"ansible": export(
			optionalAttr("groups", language.Strings),
			optionalAttr("variables", language.StringMap),
		),
		"hostfile": export(
			orText("form", "openmpi", language.OneOf("openmpi", "mpich", "plain")),
			orText("hosts", "address", language.OneOf("address", "name")),
			numberAttr("slots", 1, 4096), // ranks of a node; not given: its GPUs
		),
		"hosts": export(),
		"json":  export(),
		"exec": kind( // command with the verb behind it, or a program for each verb
			optionalAttr("command", language.Strings),
			optionalAttr("join", language.Strings),
			optionalAttr("resume", language.Strings),
			optionalAttr("drain", language.Strings),
			orText("timeout", "5min", typeDuration),
		),
	}
}

// kindSpecs makes the typed blocks of the attributes that all kinds have, and of
// the kinds.
func kindSpecs(k Kinds) []language.BlockSpec {
	return []language.BlockSpec{
		typedSpec("image", k.Image, language.Spec{Attrs: []language.Attr{
			archAttr(),
			optionalAttr("release", language.String),
			optionalAttr("kernel", language.String),
			optionalAttr("packages", language.Strings),
			optionalAttr("digest", typeDigest),
		}}),
		typedSpec("driver", k.Driver, language.Spec{Attrs: []language.Attr{
			optionalAttr("version", language.String),
			optionalAttr("packages", language.Strings),
		}}),
		typedSpec("fabric", k.Fabric, language.Spec{
			Attrs: []language.Attr{
				orNumber("rails", 1, 1, 64),
				optionalAttr("link", typeBitRate),
				optionalAttr("topology", language.OneOf("rail-optimized", "fat-tree", "top-of-rack", "explicit")),
				numberAttr("unit_size", 1, 100_000), // nodes
				optionalAttr("addressing", language.OneOf("subnet", "point-to-point")),
				optionalAttr("cidr", typePrefix),
				numberAttr("mtu", 576, 65_520), // bytes of IP; the most is that of IPoIB in connected mode
				orNumber("planes", 1, 1, 8),
				numberAttr("levels", 1, 3),
				optionalAttr("oversubscription", language.Float),
				optionalAttr("login", language.Ref("login")), // of its switches
			},
			Blocks: []language.BlockSpec{
				switchModelSpec("switch"),
				switchModelSpec("spine"),
				switchModelSpec("core"),
				namedBlock("partition", requiredAttr("pkey", typePKey), optionalAttr("ipoib", language.Bool)),
			},
		}),
		typedSpec("handover", k.Handover, language.Spec{}),
	}
}

func switchModelSpec(name string) language.BlockSpec {
	return singleBlock(name,
		optionalAttr("model", language.String),
		numberAttr("ports", 1, 2048), // of speed each
		optionalAttr("speed", typeBitRate),
		numberAttr("split", 1, 8), // links of one port
		optionalAttr("os", language.String),
	)
}

func typedSpec(name string, kinds map[string]KindSpec, common language.Spec) language.BlockSpec {
	specs := make(map[string]language.Spec, len(kinds))
	for kind, k := range kinds {
		specs[kind] = k.Spec
	}
	return language.BlockSpec{Type: name, Labels: []string{"kind", "name"}, Repeat: true, Refer: true, Body: common, Kinds: specs}
}
