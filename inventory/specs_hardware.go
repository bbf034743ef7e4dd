// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"github.com/ironrail/ironrail/inventory/language"
)

// hardwareSpec is the table of the hardware block.
func hardwareSpec() language.BlockSpec {
	gpu := language.BlockSpec{Type: "gpu", Body: language.Spec{Attrs: []language.Attr{
		requiredAttr("vendor", language.OneOf("nvidia", "amd")), requiredAttr("model", language.String), requiredAttr("count", language.Int(1, 128)), optionalAttr("memory", typeBytes),
		optionalAttr("interconnect", language.OneOf("nvswitch", "nvlink", "xgmi")),
	}}}
	dpu := namedBlock("dpu", requiredAttr("model", language.String), orText("mode", "dpu", language.OneOf("dpu", "nic")), optionalAttr("pci", language.List(typePCI)), orNumber("count", 1, 1, 32), optionalAttr("bmc", language.Bool))
	console := singleBlock("console", requiredAttr("port", language.String), orNumber("baud", 115200, 1200, 4_000_000))
	return referableBlock("hardware", []language.Attr{
		optionalAttr("vendor", language.String),
		optionalAttr("product", language.String),
		archAttr(),
		optionalAttr("page_size", language.OneOf(pageSizes...)),
		orNumber("rack_units", 1, 1, maxUnits),
		optionalAttr("weight", typeMass),
		orText("boot", "uefi", language.OneOf("uefi", "uefi-http", "bios")),
		optionalAttr("boot_timeout", typeDuration),
		orText("boot_order", "disk", language.OneOf("disk", "network")),
		optionalAttr("loader", language.OneOf("undionly.kpxe")),
		optionalAttr("secure_boot", language.Bool),
		optionalAttr("kexec", language.Bool),
		optionalAttr("tpm", language.OneOf("1.2", "2.0")),
		optionalAttr("bios", language.StringMap),
	},
		singleBlock("power", optionalAttr("typical", typeWatts), requiredAttr("max", typeWatts), orNumber("supplies", 1, 0, 32), numberAttr("required", 0, 32), optionalAttr("inrush", typeWatts), optionalAttr("liquid", typePercent)),
		singleBlock("cpu", optionalAttr("model", language.String), numberAttr("sockets", 1, 16), numberAttr("cores", 1, 4096)),
		singleBlock("memory", requiredAttr("size", typeBytes), numberAttr("dimms", 1, 512)),
		gpu,
		namedBlock("disk", optionalAttr("type", language.OneOf("nvme", "sata", "sas", "virtio")), optionalAttr("model", language.String), orNumber("count", 1, 1, 128), optionalAttr("size", typeSize),
			optionalAttr("serial", language.String), optionalAttr("wwn", typeWWN), optionalAttr("pci", typePCI), optionalAttr("bay", language.String), optionalAttr("by_path", typeByPath)),
		nicSpec("nic"), nicSpec("hca"), dpu,
		singleBlock("firmware", optionalAttr("bmc", typeVersion), optionalAttr("bios", typeVersion), optionalAttr("hca", typeVersion), optionalAttr("gpu", typeVersion)),
		console,
	)
}

// archAttr is the architecture of hardware or of an image.
func archAttr() language.Attr {
	return orText("arch", string(AMD64), language.OneOf(string(AMD64), string(ARM64)))
}

// nicSpec is a nic or an hca block; both may stand on a fabric.
func nicSpec(name string) language.BlockSpec {
	attrs := []language.Attr{
		optionalAttr("fabric", language.Ref("fabric")),
		optionalAttr("model", language.String),
		optionalAttr("speed", typeBitRate),
		optionalAttr("link_type", language.OneOf("infiniband", "ethernet")),
		optionalAttr("software_rdma", language.OneOf("rxe")),
		optionalAttr("ports", typePorts),
		optionalAttr("option_rom", language.Bool),
		numberAttr("split", 2, 4),
	}
	if name == "nic" {
		attrs = append(attrs, optionalAttr("network", language.Ref("network")), optionalAttr("tagged", language.List(language.Ref("network"))), optionalAttr("pci", language.List(typePCI)), optionalAttr("boot", language.Bool))
	} else {
		attrs[0].Required, attrs[5].Required = true, true
	}
	return namedBlock(name, attrs...)
}
