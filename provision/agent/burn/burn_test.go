// SPDX-License-Identifier: Apache-2.0

package burn_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/burn"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// timed runs a test on virtual time: a burn-in takes none, and no look is missed on
// a slow machine.
func timed(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// load is a program that runs until it has been looked at once more than so often
// (a look during which it ends does not count; 0: forever), or is stopped.
type load struct {
	looks int
	smi   func(look int, argv []string) burn.Output
	out   burn.Output

	seen int
	done chan struct{}
}

func (l *load) run(ctx context.Context, argv []string) (burn.Output, error) {
	if argv[0] == "nvidia-smi" {
		o := l.smi(l.seen, argv)
		if o.Exit == 0 {
			if l.seen++; l.looks > 0 && l.seen == l.looks+1 {
				close(l.done)
			}
		}
		return o, nil
	}
	select {
	case <-l.done:
		return l.out, nil
	case <-ctx.Done():
		return burn.Output{Exit: -1}, nil
	}
}

func free(context.Context) (func(), error) { return func() {}, nil }

func params() wire.BurnParams {
	return wire.BurnParams{Program: []string{"dcgmi", "diag"}, Vendor: "nvidia", Every: 5, Limit: 3600}
}

func TestSpansAndReasons(t *testing.T) { timed(t, testSpansAndReasons) }

func testSpansAndReasons(t *testing.T) {
	l := &load{looks: 3, done: make(chan struct{}), out: burn.Output{Stdout: []byte("verdict"), Exit: 1}, smi: func(look int, _ []string) burn.Output {
		lines := []string{
			"00000000:19:00.0, 41, 50, 250.10, 1410, 44, Not Active, Not Active, Not Active, Not Active, Not Active\n00000000:3B:00.0, 40, [N/A], 240.00, 1980, 45, Not Active, Not Active, Not Active, Not Active, Active\n",
			"00000000:19:00.0, 86, 91, 612.00, 1100, -1, Active, Active, Not Active, Not Active, Not Active\n00000000:3B:00.0, 66, [N/A], 699.90, 1755, 19, Not Active, Not Active, Not Active, Not Active, Active\n",
		}
		return burn.Output{Stdout: []byte(lines[min(look, 1)])}
	}}
	r := burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Run: l.run, Lock: free, Beat: io.Discard}.Burn(t.Context(), params())
	if r.Error != nil || r.Exit != 1 || r.Output != "verdict" || r.Ended != "" || r.Looks < 3 || r.Blind != 0 || len(r.GPUs) != 2 {
		t.Fatalf("%+v", r)
	}
	g := r.GPUs[0]
	if g.Address != "0000:19:00.0" || g.Core.Most != 86 || g.Core.Least != 41 || g.Left.Least != -1 || g.Memory.Most != 91 || g.Held["hw_thermal_slowdown"] < 2 || g.Power.Most != 612 {
		t.Errorf("%+v", g)
	}
	if g := r.GPUs[1]; g.Address != "0000:3b:00.0" || g.Memory.Count != 0 || g.Held["sw_power_cap"] < 3 || g.Held["hw_slowdown"] != 0 {
		t.Errorf("%+v", g)
	}
}

// TestOldDriver: one field that it does not know makes nvidia-smi refuse all.
func TestOldDriver(t *testing.T) { timed(t, testOldDriver) }

func testOldDriver(t *testing.T) {
	l := &load{looks: 2, done: make(chan struct{}), smi: func(_ int, argv []string) burn.Output {
		for _, field := range []string{"temperature.gpu.tlimit", "clocks_event_reasons.hw_slowdown"} {
			if strings.Contains(argv[1], field) {
				return burn.Output{Stdout: []byte("Field \"" + field + "\" is not a valid field to query.\n\n"), Exit: 2}
			}
		}
		return burn.Output{Stdout: []byte("00000000:19:00.0, 41, 50, 250.10, 1410, Not Active, Not Active, Active, Not Active, Not Active\n")}
	}}
	r := burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Run: l.run, Lock: free, Beat: io.Discard}.Burn(t.Context(), params())
	if r.Blind != 0 || len(r.GPUs) != 1 || r.GPUs[0].Held["hw_power_brake_slowdown"] < 2 || r.GPUs[0].Left.Count != 0 {
		t.Errorf("%+v", r)
	}
}

func TestBlind(t *testing.T) { timed(t, testBlind) }

func testBlind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	l := &load{done: make(chan struct{}), smi: func(int, []string) burn.Output {
		if looks++; looks == 2 {
			cancel()
		}
		return burn.Output{Stderr: []byte("NVIDIA-SMI has failed\nmore"), Exit: 9}
	}}
	r := burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Run: l.run, Lock: free, Beat: io.Discard}.Burn(ctx, params())
	if r.Blind == 0 || len(r.Without) != 1 || !strings.Contains(r.Without[0], "exit status 9: NVIDIA-SMI has failed") || r.Ended != "it was told to stop" {
		t.Errorf("%+v", r)
	}
}

// gone is a caller that is not there any more.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestEndsTheLoad(t *testing.T) {
	t.Parallel()
	forever := func() *load {
		return &load{done: make(chan struct{}), smi: func(int, []string) burn.Output {
			return burn.Output{Stdout: []byte("00000000:19:00.0, 41, 50, 250.10, 1410, 30, Not Active, Not Active, Not Active, Not Active, Not Active\n")}
		}}
	}
	for _, c := range []struct {
		name  string
		beat  io.Writer
		limit float64
		ended string
	}{
		{"nobody waits", gone{}, 36000, "nobody waits"},
		{"it takes too long", io.Discard, 120, "did not end by itself in 2m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			timed(t, func(t *testing.T) {
				p := params()
				p.Limit = c.limit
				r := burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Run: forever().run, Lock: free, Beat: c.beat}.Burn(t.Context(), p)
				if !strings.Contains(r.Ended, c.ended) || r.Exit != -1 {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

func TestRefuses(t *testing.T) { timed(t, testRefuses) }

func testRefuses(t *testing.T) {
	held := func(context.Context) (func(), error) {
		return nil, errkind.New(errkind.Refused, "another burn-in runs").Do("Wait.")
	}
	r := burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Lock: held}.Burn(t.Context(), params())
	if r.Error == nil || r.Error.Kind != "refused" || r.Error.Action != "Wait." {
		t.Errorf("%+v", r)
	}
	if r := (burn.Burner{}).Burn(t.Context(), wire.BurnParams{}); r.Error == nil {
		t.Error("nothing to run, and no error")
	}
	missing := func(context.Context, []string) (burn.Output, error) { return burn.Output{}, errors.New("no such file") }
	if r := (burn.Burner{FS: sysfs.Of(fstest.MapFS{}), Clock: clock.Wall{}, Lock: free, Run: missing, Beat: io.Discard}).Burn(t.Context(), params()); r.Error == nil || !strings.Contains(r.Error.Text, "no such file") {
		t.Errorf("%+v", r)
	}
}

func TestSensorsOfAMD(t *testing.T) { timed(t, testSensorsOfAMD) }

func testSensorsOfAMD(t *testing.T) {
	const gpu = "sys/bus/pci/devices/0000:05:00.0/"
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		gpu + "vendor": "0x1002", gpu + "class": "0x120000", gpu + "hwmon/hwmon3/temp2_input": "91000", gpu + "hwmon/hwmon3/temp2_crit": "100000",
		gpu + "hwmon/hwmon3/temp3_input": "70000", gpu + "hwmon/hwmon3/temp3_crit": "105000", gpu + "hwmon/hwmon3/power1_input": "742000000", gpu + "hwmon/hwmon3/freq1_input": "1900000000",
		"sys/bus/pci/devices/0000:06:00.0/vendor": "0x1002", "sys/bus/pci/devices/0000:06:00.0/class": "0x060400",
		"proc/mdstat": "md127 : active raid1 vda4[0] vdb4[1]\n      64 blocks [2/2] [UU]\n      [>....]  resync =  6.7% (1/2) finish=1min",
		"sys/class/kfd/kfd/topology/nodes/0/gpu_id": "0", "sys/class/kfd/kfd/topology/nodes/2/gpu_id": "28851",
		"sys/class/kfd/kfd/topology/nodes/2/properties": "cpu_cores_count 0\nlocation_id 1280\ndomain 0\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	l := &load{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := params()
	p.Vendor = "amd"
	r := burn.Burner{FS: sysfs.Of(tree), Clock: clock.Wall{}, Run: l.run, Lock: free, Beat: io.Discard}.Burn(ctx, p)
	if len(r.GPUs) != 1 || r.KFD["28851"] != "0000:05:00.0" || len(r.Arrays) != 1 || r.Arrays[0].Percent != 6.7 {
		t.Fatalf("%+v", r)
	}
	if g := r.GPUs[0]; g.Address != "0000:05:00.0" || g.Core.Most != 91 || g.Left.Least != 9 || g.MemLeft.Least != 35 || g.Power.Mean < 741.9 || g.Power.Mean > 742.1 || g.Clock.Most != 1900 {
		t.Errorf("%+v", g)
	}
}
