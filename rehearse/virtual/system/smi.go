// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
)

// address is the GPU's PCI address as sysfs has it.
func (g gpu) address() string { return strings.ToLower(strings.TrimPrefix(g.bus, "0000")) }

// memoryAt is how the memory of the GPU at an address is.
func (n *node) memoryAt(address string) GPUMemory {
	if n.cfg.GPUMemory == nil {
		return GPUMemory{}
	}
	return n.cfg.GPUMemory(address)
}

// nvidiaDriver is the version of the driver that is loaded.
func (n *node) nvidiaDriver() string {
	if v := n.fs.Text("sys/module/nvidia/version"); v != "" {
		return v
	}
	return driverVersion
}

// joined reports whether the GPUs of a vendor have links to one another of a kind.
func (n *node) joined(vendor string, kinds ...string) bool {
	for _, g := range n.cfg.Hardware.GPUs {
		for _, k := range kinds {
			if g.Vendor == vendor && g.Interconnect == k {
				return true
			}
		}
	}
	return false
}

// boardPower is the power limit of a model, watts (data sheets).
func boardPower(name string) int {
	for _, m := range []struct {
		match string
		watts int
	}{{"GB300", 1400}, {"GB200", 1200}, {"B300", 1100}, {"B200", 1000}, {"A100", 400}} {
		if strings.Contains(name, m.match) {
			return m.watts
		}
	}
	return 700
}

// nvidiaLog is nvidia-smi -q -x (nvsmi_device_v12.dtd), with the elements that
// are about the state of the hardware.
func (n *node) nvidiaLog(list []gpu, heat []GPUHeat) string {
	var b strings.Builder
	driver := n.nvidiaDriver()
	fmt.Fprintf(&b, "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n\t<timestamp>%s</timestamp>\n", n.cfg.Clock.Now().UTC().Format("Mon Jan _2 15:04:05 2006"))
	fmt.Fprintf(&b, "\t<driver_version>%s</driver_version>\n\t<attached_gpus>%d</attached_gpus>\n", driver, len(list))
	for _, g := range list {
		n.nvidiaGPU(&b, g, heatAt(heat, g.address()), driver)
	}
	b.WriteString("</nvidia_smi_log>\n")
	return b.String()
}

func (n *node) nvidiaGPU(b *strings.Builder, g gpu, h GPUHeat, driver string) {
	m := n.memoryAt(g.address())
	idle, slowed := "Active", "Not Active"
	if h.Clock > atRest.Clock {
		idle = "Not Active"
	}
	if h.Slowed {
		slowed = "Active"
	}
	pending, action := "No", "None"
	if m.BadRows > 0 {
		pending = "Yes"
	}
	if m.BadBits > 0 {
		action = "Reset"
	}
	fabric := n.nvidiaFabric(g.address())
	e := func(name, format string, args ...any) {
		fmt.Fprintf(b, "\t\t<%s>%s</%s>\n", name, fmt.Sprintf(format, args...), name)
	}
	fmt.Fprintf(b, "\t<gpu id=\"%s\">\n", g.bus)
	e("product_name", "%s", g.name)
	e("persistence_mode", "Enabled")
	e("mig_mode", "<current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig>")
	e("serial", "%s", g.serial)
	e("uuid", "%s", g.uuid)
	e("minor_number", "%d", g.index)
	e("vbios_version", "%s", n.vbios())
	e("gpu_recovery_action", "%s", action)
	e("gsp_firmware_version", "%s", driver)
	e("pci", "<pci_bus_id>%s</pci_bus_id><pci_gpu_link_info><pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>%d</current_link_gen></pcie_gen>"+
		"<link_widths><max_link_width>16x</max_link_width><current_link_width>%sx</current_link_width></link_widths></pci_gpu_link_info><replay_counter>%d</replay_counter>",
		g.bus, n.generation(g.address()), n.fs.Text("sys/bus/pci/devices", g.address(), "current_link_width"), correctedAt(n.cfg.CorrectedPCIe, g.address()))
	e("performance_state", "P0")
	e("clocks_event_reasons", "<clocks_event_reason_gpu_idle>%s</clocks_event_reason_gpu_idle><clocks_event_reason_hw_thermal_slowdown>%s</clocks_event_reason_hw_thermal_slowdown>"+
		"<clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>", idle, slowed)
	e("fb_memory_usage", "<total>%d MiB</total><used>1 MiB</used><free>%d MiB</free>", g.memory, g.memory-1)
	e("ecc_mode", "<current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc>")
	counts := func(dram int) string {
		return fmt.Sprintf("<sram_correctable>0</sram_correctable><sram_uncorrectable_parity>0</sram_uncorrectable_parity><sram_uncorrectable_secded>0</sram_uncorrectable_secded>"+
			"<dram_correctable>0</dram_correctable><dram_uncorrectable>%d</dram_uncorrectable>", dram)
	}
	e("ecc_errors", "<volatile>%s</volatile><aggregate>%s<sram_threshold_exceeded>No</sram_threshold_exceeded></aggregate>", counts(m.BadBits), counts(m.BadBits+m.BadRows))
	e("remapped_rows", "<remapped_row_corr>0</remapped_row_corr><remapped_row_unc>%d</remapped_row_unc><remapped_row_pending>%s</remapped_row_pending><remapped_row_failure>No</remapped_row_failure>", m.BadRows, pending)
	e("temperature", "<gpu_temp>%g C</gpu_temp><gpu_temp_tlimit>%g C</gpu_temp_tlimit><gpu_temp_max_tlimit_threshold>-8 C</gpu_temp_max_tlimit_threshold>"+
		"<gpu_temp_slow_tlimit_threshold>%d C</gpu_temp_slow_tlimit_threshold><memory_temp>%g C</memory_temp>", h.Core, h.Limit+slowdownLimit-h.Core, slowdownLimit, h.Memory)
	watts := int(n.cfg.Scales.Whole(quantity.GPUPowerLimit, g.address(), int64(boardPower(g.name))))
	e("gpu_power_readings", "<instant_power_draw>%.2f W</instant_power_draw><current_power_limit>%d.00 W</current_power_limit><default_power_limit>%d.00 W</default_power_limit><max_power_limit>%d.00 W</max_power_limit>", h.Power, watts, watts, watts)
	e("fabric", "%s", fabric)
	e("processes", "")
	b.WriteString("\t</gpu>\n")
}

// generation is the one of PCIe at which the link of a function runs.
func (n *node) generation(address string) int {
	if strings.HasPrefix(n.fs.Text("sys/bus/pci/devices", address, "current_link_speed"), "16.0") {
		return 4
	}
	return 5
}

// nvidiaFabric is how the GPU at an address stands with the fabric manager, and its
// clique in an NVLink domain.
func (n *node) nvidiaFabric(address string) string {
	state, status, cluster := "N/A", "N/A", n.clusterUUID()
	switch {
	case cluster == "" && !n.joined("nvidia", "nvswitch"):
	case n.darkAt(address) < 0:
		state, cluster = "In Progress", "" // nobody registers it
	default:
		state, status = "Completed", "Success"
	}
	text := fmt.Sprintf("<state>%s</state><status>%s</status>", state, status)
	if cluster != "" {
		text += fmt.Sprintf("<cliqueId>%d</cliqueId><clusterUuid>%s</clusterUuid>", nvlinkClique, cluster)
	}
	return text
}

// darkAt is how many NVLinks of the GPU at an address have no signal; negative: all.
func (n *node) darkAt(address string) int {
	if n.cfg.DarkNVLinks == nil {
		return 0
	}
	return n.cfg.DarkNVLinks(address)
}

// correctedAt is how many errors a link of the GPU at an address corrected.
func correctedAt(of func(string) int64, address string) int64 {
	if of == nil {
		return 0
	}
	return of(address)
}

// nvlinksOf is how many links a model has, and what nvidia-smi says of each, GB/s.
func nvlinksOf(name string) (links int, rate string) {
	switch {
	case strings.Contains(name, "A100"):
		return 12, "25"
	case strings.Contains(name, "B200"), strings.Contains(name, "B300"):
		return 18, "53.125"
	}
	return 18, "26.562"
}

// linksOf is how many NVLinks a GPU has, and what nvidia-smi says of each, GB/s.
func (n *node) linksOf(g gpu) (links int, rate string) {
	links, rate = nvlinksOf(g.name)
	if by := n.cfg.Scales.Of(quantity.NVLinkRate, g.address()); by != 1 {
		v, err := strconv.ParseFloat(rate, 64)
		if err == nil { // rates are constants of this package
			rate = strconv.FormatFloat(v*by, 'f', 3, 64)
		}
	}
	return int(n.cfg.Scales.Whole(quantity.NVLinkCount, g.address(), int64(links))), rate
}

// firstDark is the first of the links of a GPU that lose their signal when some do.
const firstDark = 5

// nvlinks is nvidia-smi nvlink -s, or -e.
func (n *node) nvlinks(list []gpu, counters bool) string {
	var b strings.Builder
	for _, g := range list {
		fmt.Fprintf(&b, "GPU %d: %s (UUID: %s)\n", g.index, g.name, g.uuid)
		if !n.joined("nvidia", "nvswitch", "nvlink") {
			continue
		}
		links, rate := n.linksOf(g)
		dark := n.darkAt(g.address())
		for i := range links {
			if !counters && (dark < 0 || i >= firstDark && i < firstDark+dark) {
				fmt.Fprintf(&b, "\t Link %d: <inactive>\n", i)
				continue
			}
			if !counters {
				fmt.Fprintf(&b, "\t Link %d: %s GB/s\n", i, rate)
				continue
			}
			replays := int64(0)
			if i == 0 {
				replays = correctedAt(n.cfg.CorrectedNVLink, g.address())
			}
			fmt.Fprintf(&b, "\t Link %d: Replay Errors: %d\n\t Link %d: Recovery Errors: 0\n\t Link %d: CRC Errors: 0\n\n", i, replays, i, i)
		}
	}
	return b.String()
}
