// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

func hostnameProgram(_ context.Context, c call) int {
	c.print(c.n.hostname() + "\n")
	return 0
}

func runUname(_ context.Context, c call) int {
	o, _ := splitOperands(c.Argv, "")
	release, version := c.n.cfg.Kernel.Release(), c.n.cfg.Twin.Version()
	words := []struct {
		option byte
		text   string
	}{{'s', "Linux"}, {'n', c.n.hostname()}, {'r', release}, {'v', version}, {'m', c.n.cfg.Twin.Machine()}, {'o', "GNU/Linux"}}
	var out []string
	for _, w := range words {
		if hasOption(o, w.option) || hasOption(o, 'a') || len(o) == 0 && w.option == 's' {
			out = append(out, w.text)
		}
	}
	c.print(strings.Join(out, " ") + "\n")
	return 0
}

// runSmall are programs of one line.
func runSmall(_ context.Context, c call) int {
	switch c.name() {
	case "whoami":
		c.print("root\n")
	case "id":
		if o, _ := splitOperands(c.Argv, ""); hasOption(o, 'u') {
			c.print("0\n")
			break
		}
		c.print("uid=0(root) gid=0(root) groups=0(root)\n")
	case "nproc":
		n := 0
		for _, name := range c.n.fs.Names("sys/devices/system/cpu") {
			if rest, ok := strings.CutPrefix(name, "cpu"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				n++
			}
		}
		c.print(itoa(max(n, 1)) + "\n")
	case "date":
		now := time.Now().UTC() // the time of day is the controller's, however fast hardware is
		if len(c.Argv) > 1 && c.Argv[1] == "+%s" {
			c.print(fmt.Sprintf("%d\n", now.Unix()))
			break
		}
		c.print(now.Format("Mon Jan _2 15:04:05 UTC 2006") + "\n")
	case "uptime":
		up := c.n.cfg.Kernel.Uptime()
		c.print(fmt.Sprintf(" %s up %d min,  0 users,  load average: 0.00, 0.00, 0.00\n", time.Now().UTC().Format("15:04:05"), int(up/time.Minute)))
	}
	return 0
}

// runSysctl reads settings, and writes those of the IPv4 stack that the kernel takes.
func runSysctl(_ context.Context, c call) int {
	o, names := splitOperands(c.Argv, "")
	status := 0
	for _, a := range names {
		key, value, set := strings.Cut(a, "=")
		file := "proc/sys/" + strings.ReplaceAll(key, ".", "/")
		parts := strings.Split(key, ".")
		if set && len(parts) == 5 && strings.HasPrefix(key, "net.ipv4.conf.") {
			if err := c.n.cfg.Kernel.SetIPv4(parts[3], parts[4], value); err != nil {
				status = c.fail("setting key \"" + key + "\": " + err.Error())
			}
		} else if set {
			c.n.tree.set(file, value+"\n")
		}
		if !c.n.tree.exists(file) {
			_, _ = fmt.Fprintf(c.Err, "sysctl: cannot stat /%s: No such file or directory\n", file)
			status = 1
			continue
		}
		if hasOption(o, 'n') {
			c.print(c.n.fs.Text(file) + "\n")
		} else {
			c.print(key + " = " + c.n.fs.Text(file) + "\n")
		}
	}
	return status
}

// dmesg tells what the kernel said about the start and its RDMA devices.
func runDmidecode(_ context.Context, c call) int {
	_, _ = c, 0
	for i, a := range c.Argv {
		if a != "-s" || i+1 == len(c.Argv) {
			continue
		}
		file := map[string]string{
			"system-serial-number": "product_serial", "system-uuid": "product_uuid", "system-manufacturer": "sys_vendor", "system-product-name": "product_name",
			"baseboard-serial-number": "board_serial", "chassis-serial-number": "chassis_serial", "bios-version": "bios_version", "bios-vendor": "bios_vendor",
		}[c.Argv[i+1]]
		if file == "" {
			_, _ = fmt.Fprintf(c.Err, "Invalid argument to option -s: %s\n", c.Argv[i+1])
			return 2
		}
		c.print(c.n.fs.Text("sys/class/dmi/id", file) + "\n")
		return 0
	}
	return c.fail("only -s is known here")
}

// runLscpu prints with -J the fields that tools read.
func runLscpu(_ context.Context, c call) int {
	type field struct {
		Field string `json:"field"`
		Data  string `json:"data"`
	}
	threads, packages, cores := 0, map[string]bool{}, map[string]bool{}
	for _, name := range c.n.fs.Names("sys/devices/system/cpu") {
		if !c.n.tree.exists("sys/devices/system/cpu/" + name + "/topology") {
			continue
		}
		threads++
		p := c.n.fs.Text("sys/devices/system/cpu", name, "topology/physical_package_id")
		packages[p] = true
		cores[p+" "+c.n.fs.Text("sys/devices/system/cpu", name, "topology/core_id")] = true
	}
	model := ""
	for line := range strings.Lines(c.n.fs.Text("proc/cpuinfo")) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			model = strings.TrimSpace(v)
			break
		}
	}
	sockets := max(len(packages), 1)
	list := []field{
		{"Architecture:", c.n.cfg.Twin.Machine()}, {"CPU(s):", itoa(threads)}, {"Model name:", model}, {"Thread(s) per core:", itoa(threads / max(len(cores), 1))},
		{"Core(s) per socket:", itoa(len(cores) / sockets)}, {"Socket(s):", itoa(sockets)},
	}
	if o, _ := splitOperands(c.Argv, ""); hasOption(o, 'J') {
		b, err := json.MarshalIndent(map[string]any{"lscpu": list}, "", "   ")
		if err != nil {
			return 1
		}
		c.print(string(b) + "\n")
		return 0
	}
	for _, f := range list {
		c.print(fmt.Sprintf("%-24s%s\n", f.Field, f.Data))
	}
	return 0
}
