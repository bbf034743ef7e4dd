package inventory

import (
	"github.com/ironrail/ironrail/inventory/language"
)

// hardwareSpec is the table of the hardware block.
func hardwareSpec() language.BlockSpec {
	gpu := language.BlockSpec{Type: "gpu", Body: language.Spec{Attrs: []language.Attr{
		must("vendor", language.OneOf("nvidia", "amd")), must("model", language.String), must("count", language.Int(1, 128)), attr("memory", typeBytes),
		attr("interconnect", language.OneOf("nvswitch", "nvlink", "xgmi")),
	}}}
	dpu := named("dpu", must("model", language.String), orText("mode", "dpu", language.OneOf("dpu", "nic")), orNumber("count", 1, 1, 32), attr("bmc", language.Bool))
	console := one("console", must("port", language.String), orNumber("baud", 115200, 1200, 4_000_000))
	return refer("hardware", []language.Attr{
		attr("vendor", language.String),
		attr("product", language.String),
		orNumber("rack_units", 1, 1, maxUnits),
		attr("weight", typeMass),
		orText("boot", "uefi", language.OneOf("uefi", "uefi-http", "bios")),
		attr("boot_timeout", typeDuration),
		orText("boot_order", "disk", language.OneOf("disk", "network")),
		attr("loader", language.OneOf("undionly.kpxe")),
		attr("secure_boot", language.Bool),
		attr("tpm", language.OneOf("1.2", "2.0")),
		attr("bios", language.StringMap),
	},
		one("power", attr("typical", typeWatts), must("max", typeWatts), orNumber("supplies", 1, 0, 32), number("required", 0, 32), attr("inrush", typeWatts), attr("liquid", typePercent)),
		one("cpu", attr("model", language.String), number("sockets", 1, 16), number("cores", 1, 4096)),
		one("memory", must("size", typeBytes), number("dimms", 1, 512)),
		gpu,
		named("disk", attr("type", language.OneOf("nvme", "sata", "sas", "virtio")), attr("model", language.String), orNumber("count", 1, 1, 128), attr("size", typeSize),
			attr("serial", language.String), attr("wwn", typeWWN), attr("pci", typePCI), attr("bay", language.String), attr("by_path", typeByPath)),
		nicSpec("nic"), nicSpec("hca"), dpu,
		one("firmware", attr("bmc", typeVersion), attr("bios", typeVersion), attr("hca", typeVersion), attr("gpu", typeVersion)),
		console,
	)
}

// nicSpec is a nic or an hca block; both may stand on a fabric.
func nicSpec(name string) language.BlockSpec {
	attrs := []language.Attr{
		attr("fabric", language.Ref("fabric")),
		attr("model", language.String),
		attr("speed", typeBitRate),
		attr("link_type", language.OneOf("infiniband", "ethernet")),
		attr("software_rdma", language.OneOf("rxe")),
		attr("ports", typePorts),
	}
	if name == "nic" {
		attrs = append(attrs, attr("network", language.Ref("network")), attr("pci", language.List(typePCI)), attr("boot", language.Bool))
	} else {
		attrs[0].Required, attrs[5].Required = true, true
	}
	return named(name, attrs...)
}
