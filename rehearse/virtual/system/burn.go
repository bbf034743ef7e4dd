// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/burn"
	"github.com/ironrail/ironrail/rehearse/virtual/quantity"
	"github.com/ironrail/ironrail/rehearse/virtual/system/shell"
)

// GPUHeat is how warm the GPU at a PCI address is, and what it draws.
type GPUHeat struct {
	Address      string
	Core, Memory float64 // degrees Celsius
	Limit        float64 // where heat holds the clocks down
	Power        float64 // watts
	Clock        float64 // MHz
	Slowed       bool    // heat holds the clocks down
	Capped       bool    // the power limit does
	Pace         float64 // what it computes, as a share of what its model does under load
	Wrong        bool    // a bit of what it computes is wrong
}

// rounded is what programs print of it.
func (h GPUHeat) rounded() GPUHeat {
	h.Core, h.Memory, h.Clock, h.Power = math.Round(h.Core), math.Round(h.Memory), math.Round(h.Clock), math.Round(h.Power*100)/100
	return h
}

// heat lists the GPUs as they are now; nil where nobody knows.
func (n *node) heat() []GPUHeat {
	if n.cfg.Heat == nil {
		return nil
	}
	list := n.cfg.Heat()
	for i := range list {
		list[i] = list[i].rounded()
	}
	return list
}

// atRest is a GPU of NVIDIA that nobody heats.
var atRest = GPUHeat{Core: 31, Memory: 40, Limit: 87, Power: 70.52, Clock: 345}

// heatAt is that of the GPU at an address.
func heatAt(list []GPUHeat, address string) GPUHeat {
	for _, h := range list {
		if strings.EqualFold(h.Address, address) {
			return h
		}
	}
	return atRest
}

// loadGPUs puts load on all GPUs for so long, and returns how fast they computed at its end.
func (n *node) loadGPUs(ctx context.Context, long time.Duration) (paceAt func(address string) float64, done bool) {
	if n.cfg.LoadGPUs != nil {
		n.cfg.LoadGPUs(true)
		defer n.cfg.LoadGPUs(false)
	}
	done = n.cfg.Clock.Sleep(ctx, long) == nil
	heat := n.heat()
	return func(address string) float64 {
		i := slices.IndexFunc(heat, func(h GPUHeat) bool { return strings.EqualFold(h.Address, address) })
		if i < 0 || heat[i].Pace == 0 {
			return 1 // nobody models it
		}
		return heat[i].Pace
	}, done
}

// hold is the lock of the agent's burn-in on this node.
type hold struct {
	mu   sync.Mutex // guards held
	held bool
}

func (h *hold) lock(context.Context) (func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held {
		return nil, errkind.New(errkind.Refused, "another burn-in runs on this node")
	}
	h.held = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.held = false
	}, nil
}

// burn is the agent's own code for burn-ins, on this node.
func (c call) burn(ctx context.Context, p wire.BurnParams) wire.BurnResult {
	run := func(ctx context.Context, argv []string) (burn.Output, error) {
		var out, errs bytes.Buffer
		inner := call{shell.Command{Argv: argv, Dir: c.Dir, Streams: shell.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}}, c.n, c.pid}
		known, ok := c.n.find(argv[0])
		if !ok {
			return burn.Output{}, errkind.New(errkind.Unsupported, "exec: %q: executable file not found in $PATH", argv[0])
		}
		exit := known(ctx, inner)
		return burn.Output{Stdout: out.Bytes(), Stderr: errs.Bytes(), Exit: exit}, nil
	}
	return burn.Burner{FS: c.n.fs, Clock: c.n.cfg.Clock, Run: run, Lock: c.n.burning.lock, Beat: flushed{c}}.Burn(ctx, p)
}

// flushed writes to the caller of a command at once.
type flushed struct{ c call }

func (f flushed) Write(b []byte) (int, error) {
	n, err := f.c.Out.Write(b)
	if o, ok := f.c.Out.(*output); ok {
		o.flush()
	}
	return n, err
}

// diagStart is how long DCGM takes to begin and to end a diagnosis. Belief.
const diagStart = 12 * time.Second

var testDuration = lazyregexp.New(`(?:^|;)diagnostic\.test_duration=(\d+)(?:;|$)`)

// runDcgmi is dcgmi diag -r diagnostic -p diagnostic.test_duration=... -j, of DCGM 4.
func runDcgmi(ctx context.Context, c call) int {
	if name, _ := c.n.installedAs([]string{"datacenter-gpu-manager*"}); name == "" {
		_, _ = fmt.Fprintln(c.Err, "sh: 1: dcgmi: not found")
		return 127
	}
	arg := func(option string) string {
		if i := slices.Index(c.Argv, option); i >= 0 && i+1 < len(c.Argv) {
			return c.Argv[i+1]
		}
		return ""
	}
	m := testDuration.FindStringSubmatch(arg("-p"))
	if len(c.Argv) < 2 || c.Argv[1] != "diag" || arg("-r") != "diagnostic" || m == nil || !slices.Contains(c.Argv, "-j") {
		_, _ = fmt.Fprintln(c.Err, "dcgmi: this one knows diag -r diagnostic -p diagnostic.test_duration=SECONDS -j")
		return 1
	}
	if c.n.units.of("nvidia-dcgm") != "active" {
		c.print("Error: unable to establish a connection to the specified host: localhost\nError: Unable to connect to host engine. Host engine connection invalid/disconnected.\n")
		return 161
	}
	long, err := strconv.Atoi(m[1])
	if err != nil || c.n.cfg.Clock.Sleep(ctx, diagStart) != nil {
		return 137
	}
	paceAt, done := c.n.loadGPUs(ctx, time.Duration(long)*time.Second)
	if !done {
		return 137
	}
	results := []object{}
	for _, g := range c.n.gpus() {
		results = append(results, object{"entity_group": "GPU", "entity_group_id": 1, "entity_id": g.index, "status": "Pass",
			"info": []string{fmt.Sprintf("GPU %d calculated at approximately %.2f gigaflops during this test", g.index, gflops(g.name, false)*paceAt(g.address())*c.n.differs(g.address(), "diagnostic")*c.n.cfg.Scales.Of(quantity.GPUCompute, g.address()))}})
	}
	b, err := json.MarshalIndent(object{"DCGM Diagnostic": object{"test_categories": []object{{"category": "Stress",
		"tests": []object{{"name": "diagnostic", "results": results, "test_summary": object{"status": "Pass"}}}}}},
		"metadata": object{"Driver Version Detected": c.n.nvidiaDriver(), "version": "4.4.2"}}, "", "\t")
	if err != nil {
		return 1
	}
	c.print(string(b) + "\n")
	return 0
}

// rvsStress is an action of module gst.
func rvsStress(ctx context.Context, c call, value rvsAction) int {
	ms, err := strconv.Atoi(value["duration"])
	if err != nil {
		return c.fail("this one knows a duration in milliseconds")
	}
	began := c.n.cfg.Clock.Now()
	line := func(format string, args ...any) {
		at := c.n.cfg.Clock.Now().Sub(began) + c.n.cfg.Kernel.Uptime()
		c.print(fmt.Sprintf("[RESULT] [%6d.%-6d] ", int(at.Seconds()), 0) + fmt.Sprintf(format, args...) + "\n")
	}
	line("Action name :%s", value["name"])
	line("Module name :gst")
	ids := []int{}
	for i := range c.n.amdAddresses() {
		ids = append(ids, gpuID(i))
	}
	for _, id := range ids {
		line("[%s] [GPU:: %5d] Start of GPU ramp up", value["name"], id)
	}
	target, err := strconv.ParseFloat(value["target_stress"], 64)
	if err != nil {
		return c.fail("this one knows a target in GFLOPS")
	}
	paceAt, done := c.n.loadGPUs(ctx, time.Duration(ms)*time.Millisecond)
	if !done {
		return 137
	}
	for i, at := range c.n.amdAddresses() {
		rate := gflops(c.n.amdModel(), value["data_type"] == "bf16_r") * paceAt(at) * c.n.differs(at, "gst") * c.n.cfg.Scales.Of(quantity.GPUCompute, at)
		met := strings.ToUpper(strconv.FormatBool(rate >= target*(1-gstTolerance)))
		line("[%s] [GPU:: %5d] GFLOPS %.0f", value["name"], gpuID(i), rate)
		line("[%s] [GPU:: %5d] GFLOPS %.0f Target GFLOPS: %.0f met: %s", value["name"], gpuID(i), rate, target, met)
	}
	return 0
}
