// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"fmt"
	"strconv"
	"strings"
)

// amdVendor is AMD's PCI vendor.
const amdVendor = "0x1002"

// sensors is where the sensors of a GPU are, and where its driver begins to hold
// the clocks down, degrees; 0 where it does not say.
type sensors struct {
	address, dir      string
	coreMost, memMost float64
}

// find looks for the GPUs that have sensors.
func (w *watcher) find() {
	const bus = "sys/bus/pci/devices"
	for _, at := range w.FS.Names(bus) {
		if w.FS.Text(bus, at, "vendor") != amdVendor || !strings.HasPrefix(w.FS.Text(bus, at, "class"), "0x12") {
			continue
		}
		for _, mon := range w.FS.Names(bus, at, "hwmon") {
			s := sensors{address: at, dir: w.FS.Real(bus, at, "hwmon", mon)} // without links: it is read often
			s.coreMost, _ = w.sensor(s.dir, "temp2_crit", 1e3)
			s.memMost, _ = w.sensor(s.dir, "temp3_crit", 1e3)
			w.sensors = append(w.sensors, s)
			break
		}
	}
}

// sensor reads one value, of which so many are a unit.
func (w *watcher) sensor(dir, name string, scale float64) (float64, bool) {
	v, err := strconv.ParseFloat(w.FS.Text(dir, name), 64)
	return v / scale, err == nil
}

// amd reads the sensors of amdgpu: temp2 is the hottest place of the chip, temp3
// the HBM, in thousandths of a degree; power in millionths of a watt, and the
// clock in hertz (Documentation/gpu/amdgpu/thermal.rst of Linux). crit is where
// the driver holds the clocks down.
func (w *watcher) amd() (rows []row) {
	if w.sensors == nil {
		w.find()
	}
	for _, s := range w.sensors {
		r := row{address: s.address, value: map[string]float64{}}
		put := func(name, file string, scale, most float64, left string) bool {
			v, ok := w.sensor(s.dir, file, scale)
			if ok {
				r.value[name] = v
			}
			if ok && most > 0 {
				r.value[left] = most - v
			}
			return ok
		}
		put(coreC, "temp2_input", 1e3, s.coreMost, leftC)
		put(memoryC, "temp3_input", 1e3, s.memMost, memLeftC)
		if !put(watts, "power1_average", 1e6, 0, "") { // gone from newer boards
			put(watts, "power1_input", 1e6, 0, "")
		}
		put(clockMHz, "freq1_input", 1e6, 0, "")
		if len(r.value) > 0 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		w.without("amdgpu shows no sensors (hwmon)")
	}
	return rows
}

// kfd maps the numbers that ROCm gives GPUs to PCI addresses (amdkfd's topology:
// location_id is bus, device and function).
func (w *watcher) kfd() map[string]string {
	const nodes = "sys/class/kfd/kfd/topology/nodes"
	all := map[string]string{}
	for _, n := range w.FS.Names(nodes) {
		id := w.FS.Text(nodes, n, "gpu_id")
		if id == "" || id == "0" {
			continue // a CPU
		}
		location, domain := int64(-1), int64(0)
		for line := range strings.Lines(w.FS.Text(nodes, n, "properties")) {
			f := strings.Fields(line)
			if len(f) != 2 {
				continue
			}
			v, err := strconv.ParseInt(f[1], 10, 64)
			switch {
			case err != nil:
			case f[0] == "location_id":
				location = v
			case f[0] == "domain":
				domain = v
			}
		}
		if location >= 0 {
			all[id] = fmt.Sprintf("%04x:%02x:%02x.%d", domain, location>>8&0xff, location>>3&0x1f, location&7)
		}
	}
	return all
}
