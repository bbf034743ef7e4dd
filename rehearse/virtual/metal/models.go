// SPDX-License-Identifier: Apache-2.0

package metal

import "strings"

// model is what PCI and the kernel say of a part that an inventory names. Match
// is a part of the inventory's name in lower case; the first row that fits counts.
type model struct {
	match          string
	vendor, device string // PCI ids, four hex digits
	driver         string // of the ramdisk's kernel; empty: none
	name           string // as RDMA or NVMe report it
}

// nicModels are NICs and HCAs (pci.ids; RDMA names are the hca_type of mlx5).
var nicModels = []model{
	{"connectx-8", "15b3", "1023", "mlx5_core", "MT4131"},
	{"connectx-7", "15b3", "1021", "mlx5_core", "MT4129"},
	{"connectx-6 dx", "15b3", "101d", "mlx5_core", "MT4125"},
	{"connectx-6 lx", "15b3", "101f", "mlx5_core", "MT4127"},
	{"connectx-6", "15b3", "101b", "mlx5_core", "MT4123"},
	{"connectx-5 ex", "15b3", "1019", "mlx5_core", "MT4121"},
	{"connectx-5", "15b3", "1017", "mlx5_core", "MT4119"},
	{"connectx-4 lx", "15b3", "1015", "mlx5_core", "MT4117"},
	{"connectx-4", "15b3", "1013", "mlx5_core", "MT4115"},
	{"bluefield-2", "15b3", "a2d6", "mlx5_core", "MT41686"},
	{"bluefield-3", "15b3", "a2dc", "mlx5_core", "MT41692"},
	{"bcm57608", "14e4", "1760", "bnxt_en", "BCM57608"},
	{"thor2", "14e4", "1760", "bnxt_en", "BCM57608"},
	{"bcm57504", "14e4", "1751", "bnxt_en", "BCM57504"},
	{"bcm57508", "14e4", "1750", "bnxt_en", "BCM57508"},
	{"e810", "8086", "1592", "ice", ""},
	{"x710", "8086", "1572", "i40e", ""},
	{"x550", "8086", "1563", "ixgbe", ""},
	{"i350", "8086", "1521", "igb", ""},
	{"virtio", "1af4", "1041", "virtio_net", ""},
}

// What stands in for a NIC or HCA that no row fits.
var (
	anyNIC  = model{vendor: "8086", device: "1572", driver: "i40e"}
	anyHCA  = model{vendor: "15b3", device: "1021", driver: "mlx5_core", name: "MT4129"}
	softNIC = model{vendor: "1af4", device: "1041", driver: "virtio_net"}
)

// gpuModels are GPUs; the ramdisk has no driver for any.
var gpuModels = []model{
	{match: "gb300", vendor: "10de", device: "31c2"},
	{match: "b300", vendor: "10de", device: "3182"},
	{match: "gb200", vendor: "10de", device: "2941"},
	{match: "b200", vendor: "10de", device: "2901"},
	{match: "gh200", vendor: "10de", device: "2342"},
	{match: "h200", vendor: "10de", device: "2335"},
	{match: "h100", vendor: "10de", device: "2330"},
	{match: "h800", vendor: "10de", device: "2324"},
	{match: "h20", vendor: "10de", device: "2329"},
	{match: "l40s", vendor: "10de", device: "26b9"},
	{match: "l40", vendor: "10de", device: "26b5"},
	{match: "a800", vendor: "10de", device: "20f3"},
	{match: "a30", vendor: "10de", device: "20b7"},
	{match: "a40", vendor: "10de", device: "2235"},
	{match: "a100", vendor: "10de", device: "20b2"},
	{match: "mi355", vendor: "1002", device: "75a3"},
	{match: "mi325", vendor: "1002", device: "74a5"},
	{match: "mi350", vendor: "1002", device: "75a0"},
	{match: "mi300a", vendor: "1002", device: "74a0"},
	{match: "mi300", vendor: "1002", device: "74a1"},
	{match: "mi210", vendor: "1002", device: "740f"},
	{match: "mi100", vendor: "1002", device: "738c"},
	{match: "mi250", vendor: "1002", device: "740c"},
}

// What stands in for a GPU that no row fits, by the inventory's vendor: ids that no model has.
var anyGPU = map[string]model{
	"nvidia": {vendor: "10de", device: "ffff"},
	"amd":    {vendor: "1002", device: "ffff"},
}

// PCI classes.
const (
	classNVMe       = "010802"
	classSATA       = "010601"
	classSAS        = "010700"
	classSCSI       = "010000"
	classEthernet   = "020000"
	classInfiniBand = "020700"
	class3D         = "030200"
	classProcessing = "120000" // AMD Instinct calls itself a processing accelerator
	classBridge     = "068000"
)

// findModel returns the row that fits a name, or the one that stands in.
func findModel(rows []model, name string, other model) model {
	name = strings.ToLower(name)
	for _, m := range rows {
		if strings.Contains(name, m.match) {
			return m
		}
	}
	return other
}
