// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How long the programs of vendors take that collect what they know. Belief:
// nvidia-bug-report.sh of eight GPUs takes a minute or two.
const (
	bugReportTime = 70 * time.Second
	mlxlinkTime   = 2 * time.Second
	amberTime     = 6 * time.Second
)

// argAfter is the argument behind an option; "" where there is none.
func (c call) argAfter(option string) string {
	if i := slices.Index(c.Argv, option); i >= 0 && i+1 < len(c.Argv) {
		return c.Argv[i+1]
	}
	return ""
}

// nvidiaBugReport is nvidia-bug-report.sh [--safe-mode] --output-file FILE, which comes with
// the driver: it writes FILE.gz, with the kernel's log and what nvidia-smi says.
func nvidiaBugReport(ctx context.Context, c call) int {
	if !c.n.loaded("nvidia") {
		_, _ = fmt.Fprintln(c.Err, "sh: 1: nvidia-bug-report.sh: not found")
		return 127
	}
	file := c.argAfter("--output-file")
	if file == "" {
		file = "nvidia-bug-report.log"
	}
	if c.n.cfg.Clock.Sleep(ctx, bugReportTime) != nil {
		return 137
	}
	var text strings.Builder
	fmt.Fprintf(&text, "____________________________________________\n\nStart of NVIDIA bug report log file.\n\nDate: %s\nuname: %s\ncommand line flags: %s\n\n",
		c.n.cfg.Clock.Now().UTC().Format(time.UnixDate), c.n.hostname(), strings.Join(c.Argv[1:], " "))
	heat := c.n.heat()
	text.WriteString("____________________________________________\n\n/usr/bin/nvidia-smi --query\n\n" + c.n.nvidiaLog(c.n.asked.listed(heat, c.n.gpus), heat))
	text.WriteString("____________________________________________\n\n/bin/dmesg\n\n")
	for _, m := range c.n.kernelLog() {
		fmt.Fprintf(&text, "[%12.6f] %s\n", m.after.Seconds(), m.text)
	}
	text.WriteString("End of NVIDIA bug report log file.\n")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(text.String()))
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = c.n.tree.write(c.path(file+".gz"), b.Bytes(), 0o644)
	}
	if err != nil {
		return c.fail(describeErrno(err))
	}
	c.print("nvidia-bug-report.sh will now collect information about your system and create the file '" + file + ".gz'.\n")
	return 0
}

// mlxlinkPackages bring it: it comes with DOCA and MFT.
var mlxlinkPackages = []string{"mft", "doca-*"}

// runMlxlink is mlxlink -d DEVICE [-m] [-e] [-c], as text, and --amber_collect FILE.
func runMlxlink(ctx context.Context, c call) int {
	if name, _ := c.n.installedAs(mlxlinkPackages); name == "" {
		_, _ = fmt.Fprintln(c.Err, "sh: 1: mlxlink: not found")
		return 127
	}
	device := c.argAfter("-d")
	ports := c.n.rdmaPorts()
	i := slices.IndexFunc(ports, func(p rdmaPort) bool { return p.device == device })
	if i < 0 {
		c.print("\n-E- Failed to open device: \"" + device + "\". No such device\n")
		return 1
	}
	p := ports[i]
	if file := c.argAfter("--amber_collect"); file != "" {
		if c.n.cfg.Clock.Sleep(ctx, amberTime) != nil {
			return 137
		}
		text := "Timestamp,Port_Number,Node_GUID,Link_Down,Phy_Manager_State,Ethernet_Protocol_Active\n" +
			fmt.Sprintf("%s,1,0x%s,0,%s,%s\n", c.n.cfg.Clock.Now().UTC().Format("2006-01-02 15:04:05"), strings.ReplaceAll(p.node, ":", ""), p.physical, p.generation)
		if err := c.n.tree.write(c.path(file), []byte(text), 0o644); err != nil {
			return c.fail(describeErrno(err))
		}
		return 0
	}
	if c.n.cfg.Clock.Sleep(ctx, mlxlinkTime) != nil {
		return 137
	}
	line := func(name, value string) { c.print(fmt.Sprintf("%-35s: %s\n", name, value)) }
	c.print("\nOperational Info\n----------------\n")
	line("State", map[bool]string{true: "Active", false: "Polling"}[p.state == "ACTIVE"])
	line("Physical state", p.physical)
	line("Speed", "IB-"+strings.TrimPrefix(p.generation, "4X "))
	line("Width", "4x")
	c.print("\nTroubleshooting Info\n--------------------\n")
	line("Status Opcode", "0")
	line("Group Opcode", "N/A")
	line("Recommendation", "No issue was observed")
	c.print("\nModule Info\n-----------\n")
	serial := strings.ToUpper(p.guid[max(0, len(p.guid)-6):])
	line("Identifier", "OSFP")
	line("Cable Type", "Optical Module (separated)")
	line("Vendor Name", "NVIDIA")
	line("Vendor Part Number", "MMA4Z00-NS")
	line("Vendor Serial Number", "MT"+serial)
	line("FW Version", "46.120.1")
	line("Temperature [C]", "47 [-5..75]")
	line("Rx Power Current [dBm]", "0.9,1.1,0.8,1.0 [-8.2..5]")
	line("Tx Power Current [dBm]", "1.2,1.2,1.1,1.3 [-6.6..5]")
	return 0
}
